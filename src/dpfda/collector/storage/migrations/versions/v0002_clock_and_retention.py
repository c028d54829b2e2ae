"""Columns for open and purged studies, and the state of a process's clock."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Keep the data of the first release."""
    for name in ("open", "purged"):
        column = sa.Column(name, sa.Boolean, nullable=False, server_default=sa.false())
        op.add_column("study", column)
    # Whether anybody may take part stands in the settings, which are JSON without spaces. Which of
    # the finished studies were purged is not known: to purge them once more changes nothing.
    study = sa.table("study", sa.column("open", sa.Boolean), sa.column("settings", sa.Text))
    is_open = study.c.settings.like('%"open":true%')
    op.execute(sa.update(study).where(is_open).values(open=True))
    _partly("open_studies_by_age", ["created", "id"], "open")
    _partly("studies_with_replies", ["id"], "status = 'finished' AND NOT purged")
    # The last time that was written goes on; of which start of a machine it was is not known.
    op.create_table(
        "clock",
        sa.Column("boot", sa.Text, primary_key=True),
        *(sa.Column(name, sa.Float, nullable=False) for name in ("at", "elapsed", "jump")),
    )
    op.execute("INSERT INTO clock SELECT '', at, 0, 0 FROM pulse WHERE id = 1")
    op.execute("DELETE FROM pulse WHERE id = 1")
    op.execute("UPDATE pulse SET id = 1")
    op.rename_table("pulse", "confirmed_clock")


def _partly(name: str, columns: list[str], where: str) -> None:
    condition = sa.text(where)
    op.create_index(name, "study", columns, sqlite_where=condition, postgresql_where=condition)
