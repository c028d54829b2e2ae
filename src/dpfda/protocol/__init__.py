"""The protocol of all transports: plan, tasks and replies, people, server, model."""

from dpfda.protocol import tasks
from dpfda.protocol.model import CurveModel
from dpfda.protocol.person import Person
from dpfda.protocol.plan import Design, StudyPlan
from dpfda.protocol.server import Server
from dpfda.protocol.study import Phase, Result, Study
from dpfda.protocol.task import Task

__all__ = [
    "CurveModel",
    "Design",
    "Person",
    "Phase",
    "Result",
    "Server",
    "Study",
    "StudyPlan",
    "Task",
    "tasks",
]
