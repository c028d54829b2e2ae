"""A column says whether anybody may take part: other studies are not listed for everybody."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Read the column from the settings, which are JSON without spaces."""
    column = sa.Column("open", sa.Boolean, nullable=False, server_default=sa.false())
    op.add_column("study", column)
    study = sa.table("study", sa.column("open", sa.Boolean), sa.column("settings", sa.Text))
    is_open = study.c.settings.like('%"open":true%')
    op.execute(sa.update(study).where(is_open).values(open=True))
    condition = sa.text("open")
    op.create_index(
        "open_studies_by_age",
        "study",
        ["created", "id"],
        sqlite_where=condition,
        postgresql_where=condition,
    )
