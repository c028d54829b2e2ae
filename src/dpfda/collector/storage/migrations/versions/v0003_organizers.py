"""Organizers with keys of their own, whose studies are whose, and who did what."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Every study of earlier releases belongs to the administrator."""
    owner = sa.Column("owner", sa.Text, nullable=False, server_default="administrator")
    op.add_column("study", owner)
    op.create_table(
        "organizer",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("role", sa.Text, nullable=False),
        sa.Column("key", sa.LargeBinary, nullable=False),
        *(sa.Column(name, sa.Float, nullable=False) for name in ("created", "rotated")),
    )
    op.create_table(
        "activity",
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("at", sa.Float, nullable=False),
        *(sa.Column(name, sa.Text, nullable=False) for name in ("who", "what")),
        sa.Column("study", sa.Text, sa.ForeignKey("study.id"), nullable=True),
        sa.Column("detail", sa.Text, nullable=False),
    )
    op.create_index("activities_of_study", "activity", ["study", "number"])
