"""Living views: a table, an ordered list, a tree or a single value that is kept as its feed changes."""

from everview.listening import Subscription
from everview.views.branch import Branch, Nested, Related, branch
from everview.views.change import Change, Missed
from everview.views.changes import Changes
from everview.views.feed import Alone, Feed, Feeds
from everview.views.node import Node, plain
from everview.views.ordered import OrderedView
from everview.views.queue import Policy
from everview.views.scalar import ScalarView
from everview.views.shape import Shape
from everview.views.table import TableView
from everview.views.tree import TreeView
from everview.views.turns import Turns

__all__ = [
    "Alone",
    "Branch",
    "Change",
    "Changes",
    "Feed",
    "Feeds",
    "Missed",
    "Nested",
    "Node",
    "OrderedView",
    "Policy",
    "Related",
    "ScalarView",
    "Shape",
    "Subscription",
    "TableView",
    "TreeView",
    "Turns",
    "branch",
    "plain",
]
