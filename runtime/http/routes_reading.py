"""Operations that read one user's memory, and sum it up."""

from __future__ import annotations

from typing import Any

from reverie.actors.answers import Neighborhood, UserStats
from reverie.cypher import QueryResult
from reverie.door import MAX_LIMIT
from reverie.http import answers as a, bodies as b
from reverie.http.examples import both, queries
from reverie.http.operation import USER, Call, Table
from reverie.memory_graph.audit import AuditPage
from reverie.memory_graph.context import Context
from reverie.memory_graph.errors import NotFoundError
from reverie.memory_graph.views import EntityView
from reverie.memory_graph.why import Explanation
from reverie.results import ConversationSummary

table = Table("reading")


@table.add(
    "POST",
    f"{USER}/search",
    "read",
    "User.search",
    body=b.Search,
    answer=a.Hits,
    examples=both(
        {"question": "Where does her sister live?", "limit": 5},
        {"question": "她姐姐住在哪里？", "limit": 5, "types": ["memory"]},
    ),
)
def search(call: Call) -> a.Hits:
    """Return what answers a question, best first, each hit with its reasons."""
    return a.Hits(call.user.search(**call.given))


@table.add(
    "POST",
    f"{USER}/nearest",
    "read",
    "User.nearest",
    body=b.Nearest,
    answer=a.NearOnes,
    examples=both({"question": "Where does her sister live?"}, {"question": "她姐姐住在哪里？"}),
)
def nearest(call: Call) -> a.NearOnes:
    """Return the memories that are nearest to a question in meaning alone, each with its cosine.

    `search` ranks better; this is for comparing, and for thresholds on a cosine.
    """
    return a.NearOnes(call.user.nearest(**call.given))


@table.add(
    "POST",
    f"{USER}/why",
    "read",
    "User.why",
    body=b.Why,
    answer=Explanation,
    examples=both(
        {"question": "Where does her sister live?", "item_id": "m1"},
        {"question": "她姐姐住在哪里？", "item_id": "m1"},
    ),
)
def why(call: Call) -> Explanation:
    """Return why a memory, message or summary does or does not come up for a question."""
    return call.user.why(**call.given)


@table.add(
    "POST",
    f"{USER}/query",
    "read",
    "User.query",
    body=b.Cypher,
    answer=QueryResult,
    is_slow=True,
    examples=both(
        {
            "cypher": "MATCH (m:Memory)-[:CONTAINS_ENTITY]->(e:Entity) WHERE e.name = $name "
            "RETURN m.text",
            "params": {"name": "Oslo"},
        },
        {
            "cypher": "MATCH (m:Memory)-[:CONTAINS_ENTITY]->(e:Entity) WHERE e.name = $name "
            "RETURN m.text",
            "params": {"name": "奥斯陆"},
        },
    ),
)
def query(call: Call) -> QueryResult:
    """Return what a graph query in Cypher finds in this user's graph, and in no other.

    It needs the extra "cypher" on the server.
    """
    return call.user.query(**call.given)


@table.add(
    "POST",
    f"{USER}/context",
    "read",
    "User.context",
    body=b.AskContext,
    answer=Context,
    examples=both(
        {"question": "Where does her sister live?", "budget_tokens": 200},
        {"question": "她姐姐住在哪里？", "budget_tokens": 200},
    ),
)
def context(call: Call) -> Context:
    """Return a block of text for a prompt: the best hits that fit in a budget of tokens."""
    return call.user.context(**call.given)


@table.add(
    "POST",
    f"{USER}/conversation-summary",
    "read",
    "User.get_conversation_summary",
    body=b.AskSummary,
    answer=ConversationSummary,
    errors=(NotFoundError,),
    is_slow=True,
    examples=both({"topic": "Oslo", "max_tokens": 100}, {"topic": "奥斯陆", "max_tokens": 100}),
)
def conversation_summary(call: Call) -> ConversationSummary:
    """Return what was said lately, or of a topic: a summary that is made now, and not kept."""
    return call.user.get_conversation_summary(**call.given)


@table.add(
    "POST",
    f"{USER}/summaries",
    "write",
    "User.summarise",
    answer=a.Items,
    is_repeatable=True,
    is_slow=True,
    examples=both(),
)
def summarise_user(call: Call) -> a.Items:
    """Bring this user's summaries up to date, and return those that were made."""
    return a.Items(call.user.summarise())


@table.add(
    "POST",
    f"{USER}/reflections",
    "write",
    "User.reflect",
    body=b.Force,
    answer=a.Insights,
    is_slow=True,
    examples=both({"force": True}),
)
def reflect_user(call: Call) -> a.Insights:
    """Draw insights from what this user gathered since the last reflection, if that is enough."""
    return a.Insights(call.user.reflect(**call.once))


@table.add(
    "GET",
    f"{USER}/entities",
    "read",
    "User.entities",
    query=b.EntityQuery,
    answer=a.Page[EntityView],
    examples=queries({"name": "Oslo"}, {"name": "奥斯陆"}),
)
def entities(call: Call) -> Any:
    """Return the people, places and things that are known, most mentioned first.

    Pages reach the first 10,000; `total` counts all.
    """
    user, name = call.user, call.query.name
    found = call.page(user.entities(name, limit=MAX_LIMIT))
    if found["total"] == MAX_LIMIT and name is None:
        found["total"] = max(found["total"], user.stats().entities)
    return found


@table.add(
    "GET",
    f"{USER}/neighbors",
    "read",
    "User.neighbors",
    query=b.NeighborQuery,
    answer=Neighborhood,
    errors=(NotFoundError,),
    examples=queries({"name": "Oslo"}, {"name": "奥斯陆"}),
)
def neighbors(call: Call) -> Neighborhood:
    """Return an entity's relations, what it is seen with, and where it is mentioned."""
    return call.user.neighbors(**call.given)


@table.add(
    "GET",
    f"{USER}/audit",
    "read",
    "User.audit",
    query=b.Paging,
    answer=AuditPage,
    examples=both(query={"limit": 10}),
)
def audit(call: Call) -> AuditPage:
    """Return what became of the memories that no longer answer: one page, oldest first."""
    return call.user.audit(**call.given)


@table.add("GET", f"{USER}/stats", "read", "User.stats", answer=UserStats, examples=both())
def user_stats(call: Call) -> UserStats:
    """Return counts of this user; all zero for one that is not there."""
    return call.user.stats()


@table.add("GET", f"{USER}/digest", "read", "User.digest", answer=a.Digest, examples=both())
def user_digest(call: Call) -> a.Digest:
    """Return the digest of the whole state, the same in every process."""
    return a.Digest(call.user.digest())


@table.add(
    "GET",
    f"{USER}/check",
    "read",
    "User.check",
    answer=a.Lines,
    examples=both(),
)
def check_user(call: Call) -> a.Lines:
    """Return broken invariants of this user's state; none when it is sound."""
    return a.Lines(list(call.user.check()))
