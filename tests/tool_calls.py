"""Calls of every tool, in English and Chinese, and what may not change by them."""

from __future__ import annotations

from typing import Any

import msgspec

from reverie import Runtime

ENGLISH: dict[str, dict[str, Any]] = {
    "add_memory": {"text": "Ana keeps bees on the roof.", "tags": ["hobby"], "entities": ["Ana"]},
    "search_memory": {"query": "Who keeps bees?", "limit": 3},
    "list_memories": {"limit": 5},
    "get_conversation_summary": {"max_tokens": 50},
    "related": {"name": "Ana"},
    "relationships": {"other": "Bo"},
    "update_memory": {"memory_id": "m1", "text": "Ana keeps bees and hens on the roof."},
    "create_entities": {
        "entities": [
            {"name": "Ana", "entityType": "person", "observations": ["sells honey"]},
            {"name": "Market Hall", "entityType": "place", "observations": []},
        ]
    },
    "create_relations": {
        "relations": [{"from": "Ana", "to": "Market Hall", "relationType": "sells at"}]
    },
    "add_observations": {
        "observations": [{"entityName": "Market Hall", "contents": ["closes at four"]}]
    },
    "read_graph": {},
    "search_nodes": {"query": "honey"},
    "open_nodes": {"names": ["Market Hall"]},
    "delete_observations": {"deletions": [{"entityName": "Ana", "observations": ["sells honey"]}]},
    "delete_relations": {
        "relations": [{"from": "Ana", "to": "Market Hall", "relationType": "sells at"}]
    },
    "delete_entities": {"entityNames": ["Market Hall"]},
    "add_memories": {"text": "I moved to Lyon last week."},
    "delete_memories": {"memory_ids": ["m1"]},
    "forget": {"memory_id": "m1"},
    "delete_all_memories": {"confirm": "ana"},
}
CHINESE: dict[str, dict[str, Any]] = ENGLISH | {
    "add_memory": {"text": "小安在屋顶上养蜂。", "tags": ["爱好"], "entities": ["小安"]},
    "search_memory": {"query": "谁在养蜂？", "limit": 3},
    "related": {"name": "小安"},
    "relationships": {"other": "小波"},
    "update_memory": {"memory_id": "m1", "text": "小安在屋顶上养蜂和养鸡。"},
    "create_entities": {
        "entities": [
            {"name": "小安", "entityType": "人物", "observations": ["卖蜂蜜"]},
            {"name": "市场", "entityType": "地点", "observations": []},
        ]
    },
    "create_relations": {"relations": [{"from": "小安", "to": "市场", "relationType": "出售于"}]},
    "add_observations": {"observations": [{"entityName": "市场", "contents": ["四点关门"]}]},
    "search_nodes": {"query": "蜂蜜"},
    "open_nodes": {"names": ["市场"]},
    "delete_observations": {"deletions": [{"entityName": "小安", "observations": ["卖蜂蜜"]}]},
    "delete_relations": {"relations": [{"from": "小安", "to": "市场", "relationType": "出售于"}]},
    "delete_entities": {"entityNames": ["市场"]},
    "add_memories": {"text": "我上周搬到了里昂。"},
}


def kept(rt: Runtime, user_id: str, world: str = "default") -> bytes:
    """Everything that is kept of a user, but what reading changes."""
    user = rt.user(user_id, world)
    page = user.list(
        limit=10_000,
        types=("memory", "message", "summary"),
        include_archived=True,
        include_retired=True,
    )
    assert page.cursor is None
    plain = [msgspec.structs.replace(item, hits=0) for item in page.items]
    relations = user.neighbors(include_retired=True).relations if page.items else []
    still = [msgspec.structs.replace(relation, weight=0.0) for relation in relations]
    return msgspec.json.encode([plain, still, user.relationships.list()])
