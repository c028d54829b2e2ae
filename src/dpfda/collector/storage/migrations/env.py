"""The entry point of Alembic: run migrations on the given connection."""

from alembic import context

from dpfda.collector.storage.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
with context.begin_transaction():
    context.run_migrations()
