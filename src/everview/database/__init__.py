"""A database: tables that change in transactions, and views that are kept correct as they do."""

from everview.database.connect import connect
from everview.database.database import Database
from everview.database.transactions import Transaction
from everview.database.views import Table, View
from everview.listening import Subscription

__all__ = ["Database", "Subscription", "Table", "Transaction", "View", "connect"]
