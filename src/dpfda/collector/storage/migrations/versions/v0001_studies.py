"""Studies, people, replies and models."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "study",
        sa.Column("id", sa.String(64), primary_key=True),
        sa.Column("hash", sa.String(64), nullable=False),
        sa.Column("plan", sa.Text, nullable=False),
        sa.Column("settings", sa.Text, nullable=False),
        sa.Column("created", sa.Float, nullable=False),
        sa.Column("phase", sa.Integer, nullable=False),
        sa.Column("kind", sa.String(64), nullable=False),
        sa.Column("quota", sa.Integer, nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("issued", sa.Integer, nullable=False),
        sa.Column("began", sa.Float),
        sa.Column("enrolled", sa.Integer, nullable=False),
        sa.Column("successor", sa.String(64)),
    )
    op.create_table(
        "person",
        sa.Column("token", sa.LargeBinary(32), primary_key=True),
        sa.Column("study", sa.String(64), sa.ForeignKey("study.id"), nullable=False),
        sa.Column("phase", sa.Integer),
        sa.Column("number", sa.Integer),
    )
    op.create_index("one_person_a_ticket", "person", ["study", "phase", "number"], unique=True)
    op.create_table(
        "reply",
        sa.Column("study", sa.String(64), sa.ForeignKey("study.id"), primary_key=True),
        sa.Column("phase", sa.Integer, primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("digest", sa.LargeBinary(32), nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.Column("received", sa.Float, nullable=False),
    )
    op.create_table(
        "model",
        sa.Column("study", sa.String(64), sa.ForeignKey("study.id"), primary_key=True),
        sa.Column("phase", sa.Integer, primary_key=True),
        sa.Column("kind", sa.String(64), nullable=False),
        sa.Column("people", sa.Integer, nullable=False),
        sa.Column("created", sa.Float, nullable=False),
        sa.Column("document", sa.Text, nullable=False),
        sa.Column("summary", sa.Text, nullable=False),
    )


def downgrade() -> None:
    """Drop the tables."""
    for table in ("model", "reply", "person", "study"):
        op.drop_table(table)
