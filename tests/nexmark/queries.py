"""The queries of Nexmark, an auction house's: as Everview keeps them, and as DuckDB says those that it says otherwise.

Query 12 counts by the time at which a bid arrives; `arrived` is a column of the bids, which whoever feeds them fills.
Query 13 joins what its authors read from a file, here the table `side_input`. Query 10 writes a log; what it writes
is the view. Where a query picks one of several rows, those are told apart by `date_time`, which no two bids share.
"""

from __future__ import annotations

TABLES = """
CREATE TABLE person (
  id BIGINT PRIMARY KEY, name STRING, email_address STRING, credit_card STRING, city STRING, state STRING,
  date_time TIMESTAMP, extra STRING);
CREATE TABLE auction (
  id BIGINT PRIMARY KEY, item_name STRING, description STRING, initial_bid BIGINT, reserve BIGINT,
  date_time TIMESTAMP, expires TIMESTAMP, seller BIGINT, category BIGINT, extra STRING);
CREATE TABLE bid (
  auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, date_time TIMESTAMP, arrived TIMESTAMP,
  extra STRING);
CREATE TABLE side_input (key BIGINT PRIMARY KEY, value STRING);
"""

_RANKS = """
  COUNT(*) FILTER (WHERE price < 10000) AS rank1_bids,
  COUNT(*) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_bids,
  COUNT(*) FILTER (WHERE price >= 1000000) AS rank3_bids
"""
_DISTINCT_RANKS = ",\n".join(
    f"  COUNT(DISTINCT {column}){condition} AS {name}{column}s"
    for column in ("bidder", "auction")
    for name, condition in (
        ("total_", ""),
        ("rank1_", " FILTER (WHERE price < 10000)"),
        ("rank2_", " FILTER (WHERE price >= 10000 AND price < 1000000)"),
        ("rank3_", " FILTER (WHERE price >= 1000000)"),
    )
)
_WINNING = """
  SELECT a.id, a.item_name, a.seller, a.category, b.bidder, b.price, b.date_time,
    ROW_NUMBER() OVER (PARTITION BY a.id ORDER BY b.price DESC, b.date_time ASC) AS place
  FROM auction a JOIN bid b ON a.id = b.auction AND b.date_time BETWEEN a.date_time AND a.expires
"""
_HOT = """
  SELECT auction, COUNT(*) AS num, window_start, window_end
  FROM {bids}
  GROUP BY auction, window_start, window_end
"""
_HOTTEST = """
SELECT counted.auction, counted.num, counted.window_start
FROM ({hot}) counted
JOIN (SELECT window_start, MAX(num) AS most FROM ({hot}) each GROUP BY window_start) best
  ON counted.window_start = best.window_start AND counted.num >= best.most
"""
_HIGHEST = """
SELECT b.auction, b.price, b.bidder, b.date_time
FROM bid b
JOIN (SELECT MAX(price) AS most, window_start, window_end FROM {bids} GROUP BY window_start, window_end) best
  ON b.price = best.most AND b.date_time >= best.window_start AND b.date_time < best.window_end
"""
_NEW_USERS = """
SELECT p.id, p.name, p.window_start
FROM (SELECT id, name, window_start, window_end FROM {persons} GROUP BY id, name, window_start, window_end) p
JOIN (SELECT seller, window_start, window_end FROM {auctions} GROUP BY seller, window_start, window_end) a
  ON p.id = a.seller AND p.window_start = a.window_start AND p.window_end = a.window_end
"""
_BY_ARRIVAL = "SELECT bidder, window_start, window_end, COUNT(*) AS bids FROM {bids} GROUP BY ALL"
_SECONDS_10 = "INTERVAL 10 SECONDS"

QUERIES: dict[int, str] = {
    0: "SELECT auction, bidder, price, date_time, extra FROM bid",
    1: "SELECT auction, bidder, 0.908 * price AS price, date_time, extra FROM bid",
    2: "SELECT auction, price FROM bid WHERE auction % 123 = 0",
    3: """
SELECT p.name, p.city, p.state, a.id
FROM auction a JOIN person p ON a.seller = p.id
WHERE a.category = 10 AND p.state IN ('OR', 'ID', 'CA')
""",
    4: """
SELECT category, AVG(final) AS average
FROM (
  SELECT MAX(b.price) AS final, a.category
  FROM auction a, bid b
  WHERE a.id = b.auction AND b.date_time BETWEEN a.date_time AND a.expires
  GROUP BY a.id, a.category) sold
GROUP BY category
""",
    5: _HOTTEST.format(
        hot=_HOT.format(bids=f"HOP(TABLE bid, DESCRIPTOR(date_time), INTERVAL 2 SECONDS, {_SECONDS_10})")
    ),
    6: f"""
SELECT seller, date_time, AVG(price) OVER (
  PARTITION BY seller ORDER BY date_time ROWS BETWEEN 10 PRECEDING AND CURRENT ROW) AS average
FROM ({_WINNING}) sold WHERE place = 1
""",
    7: _HIGHEST.format(bids=f"TUMBLE(TABLE bid, DESCRIPTOR(date_time), {_SECONDS_10})"),
    8: _NEW_USERS.format(
        persons=f"TUMBLE(TABLE person, DESCRIPTOR(date_time), {_SECONDS_10})",
        auctions=f"TUMBLE(TABLE auction, DESCRIPTOR(date_time), {_SECONDS_10})",
    ),
    9: f"SELECT id, item_name, seller, category, bidder, price, date_time FROM ({_WINNING}) ranked WHERE place = 1",
    10: """
SELECT auction, bidder, price, date_time, extra,
  date_format(date_time, 'yyyy-MM-dd') AS day, date_format(date_time, 'HH:mm') AS minute
FROM bid
""",
    11: """
SELECT bidder, COUNT(*) AS bids, session_window.start AS began, session_window.end AS ended
FROM bid GROUP BY bidder, session_window(date_time, '10 seconds')
""",
    12: _BY_ARRIVAL.format(bids=f"TUMBLE(TABLE bid, DESCRIPTOR(arrived), {_SECONDS_10})"),
    13: """
SELECT b.auction, b.bidder, b.price, b.date_time, s.value
FROM bid b JOIN side_input s ON b.auction % 100 = s.key
""",
    14: """
SELECT auction, bidder, 0.908 * price AS price,
  CASE WHEN hour(date_time) >= 8 AND hour(date_time) <= 18 THEN 'dayTime'
       WHEN hour(date_time) <= 6 OR hour(date_time) >= 20 THEN 'nightTime'
       ELSE 'otherTime' END AS bid_time,
  date_time, extra, length(extra) - length(replace(extra, 'c', '')) AS c_counts
FROM bid
WHERE 0.908 * price > 1000000 AND 0.908 * price < 50000000
""",
    15: f"""
SELECT date_format(date_time, 'yyyy-MM-dd') AS day, COUNT(*) AS total_bids, {_RANKS}, {_DISTINCT_RANKS}
FROM bid GROUP BY date_format(date_time, 'yyyy-MM-dd')
""",
    16: f"""
SELECT channel, date_format(date_time, 'yyyy-MM-dd') AS day, MAX(date_format(date_time, 'HH:mm')) AS minute,
  COUNT(*) AS total_bids, {_RANKS}, {_DISTINCT_RANKS}
FROM bid GROUP BY channel, date_format(date_time, 'yyyy-MM-dd')
""",
    17: f"""
SELECT auction, date_format(date_time, 'yyyy-MM-dd') AS day, COUNT(*) AS total_bids, {_RANKS},
  MIN(price) AS min_price, MAX(price) AS max_price, AVG(price) AS avg_price, SUM(price) AS sum_price
FROM bid GROUP BY auction, date_format(date_time, 'yyyy-MM-dd')
""",
    18: """
SELECT auction, bidder, price, channel, url, date_time, extra
FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY bidder, auction ORDER BY date_time DESC) AS place FROM bid) ranked
WHERE place <= 1
""",
    19: """
SELECT auction, bidder, price, date_time, place
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC, date_time) AS place FROM bid) ranked
WHERE place <= 10
""",
    20: """
SELECT b.auction, b.bidder, b.price, b.channel, b.url, b.date_time, b.extra, a.item_name, a.description,
  a.initial_bid, a.reserve, a.date_time AS opened, a.expires, a.seller, a.category
FROM bid b JOIN auction a ON b.auction = a.id
WHERE a.category = 10
""",
    21: """
SELECT auction, bidder, price, channel,
  CASE lower(channel) WHEN 'apple' THEN '0' WHEN 'google' THEN '1' WHEN 'facebook' THEN '2' WHEN 'baidu' THEN '3'
    ELSE regexp_extract(url, '(&|^)channel_id=([^&]*)', 2) END AS channel_id
FROM bid
WHERE regexp_extract(url, '(&|^)channel_id=([^&]*)', 2) <> ''
  OR lower(channel) IN ('apple', 'google', 'facebook', 'baidu')
""",
    22: """
SELECT auction, bidder, price, channel,
  split_part(url, '/', 4) AS dir1, split_part(url, '/', 5) AS dir2, split_part(url, '/', 6) AS dir3
FROM bid
""",
}


def _tumbled(table: str, moment: str = "date_time") -> str:
    """Rows with the window of ten seconds that they are in, in DuckDB's words."""
    start = f"time_bucket({_SECONDS_10}, {moment})"
    return f"(SELECT *, {start} AS window_start, {start} + {_SECONDS_10} AS window_end FROM {table})"


_HOPPED = f"""(
  SELECT *, window_start + {_SECONDS_10} AS window_end
  FROM (SELECT *, time_bucket(INTERVAL 2 SECONDS, date_time) - hop * INTERVAL 2 SECONDS AS window_start
        FROM bid, range(5) AS hops(hop)))"""

IN_DUCKDB: dict[int, str] = QUERIES | {
    5: _HOTTEST.format(hot=_HOT.format(bids=_HOPPED)),
    7: _HIGHEST.format(bids=_tumbled("bid")),
    8: _NEW_USERS.format(persons=_tumbled("person"), auctions=_tumbled("auction")),
    11: """
SELECT bidder, COUNT(*) AS bids, MIN(date_time) AS began, MAX(date_time) + INTERVAL 10 SECONDS AS ended
FROM (
  SELECT *, SUM(first) OVER (PARTITION BY bidder ORDER BY date_time) AS session
  FROM (
    SELECT *, CASE WHEN date_time - LAG(date_time) OVER (PARTITION BY bidder ORDER BY date_time)
                        <= INTERVAL 10 SECONDS THEN 0 ELSE 1 END AS first
    FROM bid))
GROUP BY bidder, session
""",
    12: _BY_ARRIVAL.format(bids=_tumbled("bid", "arrived")),
}
for _number in (10, 15, 16, 17):
    IN_DUCKDB[_number] = (
        QUERIES[_number]
        .replace("date_format(date_time, 'yyyy-MM-dd')", "strftime(date_time, '%Y-%m-%d')")
        .replace("date_format(date_time, 'HH:mm')", "strftime(date_time, '%H:%M')")
    )
