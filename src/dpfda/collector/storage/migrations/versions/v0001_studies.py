"""Studies, people, replies and models: the first tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def _text(name: str, *, nullable: bool = False, primary_key: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=nullable, primary_key=primary_key)


def _integer(
    name: str, *, nullable: bool = False, primary_key: bool = False, counted: bool = True
) -> sa.Column[int]:
    return sa.Column(
        name,
        sa.Integer,
        nullable=nullable,
        primary_key=primary_key,
        autoincrement="auto" if counted else False,
    )


def _float(name: str, *, nullable: bool = False) -> sa.Column[float]:
    return sa.Column(name, sa.Float, nullable=nullable)


def _bytes(name: str, *, primary_key: bool = False) -> sa.Column[bytes]:
    return sa.Column(name, sa.LargeBinary, nullable=False, primary_key=primary_key)


def _of_study(*, primary_key: bool = False) -> sa.Column[str]:
    reference = sa.ForeignKey("study.id")
    return sa.Column("study", sa.Text, reference, nullable=False, primary_key=primary_key)


def _partly(name: str, column: str, where: str) -> None:
    condition = sa.text(where)
    op.create_index(name, "study", [column], sqlite_where=condition, postgresql_where=condition)


def upgrade() -> None:
    """Create the tables."""
    key = {"primary_key": True}
    number = {"primary_key": True, "counted": False}
    op.create_table(
        "study",
        _text("id", **key),
        *map(_text, ("hash", "plan", "settings")),
        _float("created"),
        _integer("phase"),
        _text("kind"),
        _integer("quota"),
        *map(_text, ("status", "state", "title")),
        _float("epsilon"),
        _text("seal"),
        _integer("issued"),
        *(_float(name, nullable=True) for name in ("began", "deadline", "due")),
        _integer("enrolled"),
        _text("successor", nullable=True),
    )
    op.create_index("studies_by_age", "study", ["created", "id"])
    _partly("studies_closing", "id", "status = 'closing'")
    _partly("studies_with_deadline", "due", "status = 'open' AND due IS NOT NULL")
    _partly("studies_with_all_tickets_out", "id", "status = 'open' AND issued >= quota")
    op.create_table(
        "person",
        _bytes("token", **key),
        _of_study(),
        *(_integer(name, nullable=True) for name in ("phase", "number")),
        _float("until", nullable=True),
        sqlite_with_rowid=False,
    )
    op.create_index("one_person_a_ticket", "person", ["study", "phase", "number"], unique=True)
    op.create_table("past", _of_study(**key), _bytes("token", **key), sqlite_with_rowid=False)
    op.create_table(
        "reply",
        _of_study(**key),
        *(_integer(name, **key) for name in ("phase", "number")),
        *map(_bytes, ("digest", "body")),
        sqlite_with_rowid=False,
    )
    op.create_table("ended_session", _bytes("session", **key), _float("until"))
    op.create_table(
        "model",
        _of_study(**key),
        _integer("phase", **key),
        _text("kind"),
        _integer("people"),
        _float("created"),
        *map(_text, ("document", "summary")),
    )
    op.create_table(
        "tally",
        _of_study(**key),
        *(_integer(name, **number) for name in ("phase", "slot")),
        _integer("answered"),
    )
    op.create_table(
        "total",
        _text("name", **key),
        _integer("slot", **number),
        sa.Column("number", sa.BigInteger, nullable=False),
    )
    op.create_table("pulse", _integer("id", **number), _float("at"))
    op.create_table(
        "forgetting",
        _of_study(**key),
        _integer("phase", **key),
        _text("what", **key),
        _integer("reached"),
    )
