"""Durable state: a directory of immutable slices, and a log that lists the slices of each epoch."""

from everview.traces.store.draft import Replace
from everview.traces.store.files import FileSystem
from everview.traces.store.log import EVERY_TICK, NEVER
from everview.traces.store.manifest import Fingerprints, Manifest, ManifestEntry
from everview.traces.store.reader import Reader, State
from everview.traces.store.segment import SegmentWriter
from everview.traces.store.slices import Slice, SliceRef
from everview.traces.store.store import Policy, Store

__all__ = [
    "EVERY_TICK",
    "NEVER",
    "FileSystem",
    "Fingerprints",
    "Manifest",
    "ManifestEntry",
    "Policy",
    "Reader",
    "Replace",
    "SegmentWriter",
    "Slice",
    "SliceRef",
    "State",
    "Store",
]
