"""The tables of a collector. The first migration creates them; later ones change them."""

from __future__ import annotations

from sqlalchemy import (
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
)

metadata = MetaData()

study = Table(
    "study",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("hash", String(64), nullable=False),
    Column("plan", Text, nullable=False),
    Column("settings", Text, nullable=False),
    Column("created", Float, nullable=False),
    Column("phase", Integer, nullable=False),
    Column("kind", String(64), nullable=False),
    Column("quota", Integer, nullable=False),
    Column("status", String(16), nullable=False),
    Column("state", Text, nullable=False),
    Column("issued", Integer, nullable=False),
    Column("began", Float),
    Column("enrolled", Integer, nullable=False),
    Column("successor", String(64)),
)

person = Table(
    "person",
    metadata,
    Column("token", LargeBinary(32), primary_key=True),  # SHA-256; the token itself is not kept
    Column("study", String(64), ForeignKey("study.id"), nullable=False),
    Column("phase", Integer),
    Column("number", Integer),
    Index("one_person_a_ticket", "study", "phase", "number", unique=True),
)

reply = Table(
    "reply",
    metadata,
    Column("study", String(64), ForeignKey("study.id"), primary_key=True),
    Column("phase", Integer, primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("digest", LargeBinary(32), nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("received", Float, nullable=False),
)

model = Table(
    "model",
    metadata,
    Column("study", String(64), ForeignKey("study.id"), primary_key=True),
    Column("phase", Integer, primary_key=True),
    Column("kind", String(64), nullable=False),
    Column("people", Integer, nullable=False),
    Column("created", Float, nullable=False),
    Column("document", Text, nullable=False),
    Column("summary", Text, nullable=False),
)
