"""Studies, people, replies and models: the tables as they are, until the first release."""

from alembic import op

from dpfda.collector.storage.tables import metadata

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the tables."""
    metadata.create_all(op.get_bind())


def downgrade() -> None:
    """Drop the tables."""
    metadata.drop_all(op.get_bind())
