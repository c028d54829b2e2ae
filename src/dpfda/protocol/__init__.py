"""One protocol for every carrier: plan, tasks and replies, client, server, model."""

from dpfda.protocol import tasks
from dpfda.protocol.client import Client
from dpfda.protocol.design import Design, Progress
from dpfda.protocol.model import CurveModel
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.server import Server
from dpfda.protocol.task import Task

__all__ = ["Client", "CurveModel", "Design", "Progress", "Server", "StudyPlan", "Task", "tasks"]
