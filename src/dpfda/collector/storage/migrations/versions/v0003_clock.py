"""Add the state of a process's clock, so that the next process detects a jump."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """The last time that was written goes on; which start of a machine it was of is not known."""
    op.create_table(
        "clock",
        sa.Column("boot", sa.Text, primary_key=True),
        *(sa.Column(name, sa.Float, nullable=False) for name in ("at", "elapsed", "jump")),
    )
    op.execute("INSERT INTO clock SELECT '', at, 0, 0 FROM pulse WHERE id = 1")
    op.execute("DELETE FROM pulse WHERE id = 1")
    op.execute("UPDATE pulse SET id = 1")
    op.rename_table("pulse", "confirmed_clock")
