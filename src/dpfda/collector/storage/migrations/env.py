"""What Alembic runs: migrations on the connection it was handed."""

from alembic import context

from dpfda.collector.storage.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
with context.begin_transaction():
    context.run_migrations()
