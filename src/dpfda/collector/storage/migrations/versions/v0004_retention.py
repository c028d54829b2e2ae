"""A column says whether replies of a finished study were purged, so that others can be found."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Of earlier studies this is not known: purging them once more changes nothing."""
    column = sa.Column("purged", sa.Boolean, nullable=False, server_default=sa.false())
    op.add_column("study", column)
    condition = sa.text("status = 'finished' AND NOT purged")
    op.create_index(
        "studies_with_replies",
        "study",
        ["id"],
        sqlite_where=condition,
        postgresql_where=condition,
    )
