"""Arrays of 64-bit words: the form of rows in everything that runs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.int64]  # one word for each row
Matrix = NDArray[np.int64]  # a row of words for each row of a relation, the weight last
