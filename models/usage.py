"""What language model calls cost, by user and purpose, and hard budgets.

Who pays is said once, around the work, and reaches every call below it through a context variable,
so that extractors and deciders need not know for whom they work:

    with charged_to("default", "ana", calls=8), purpose("extract"):
        extractor.extract(turns, history)

A new thread begins without a payer; run it in `contextvars.copy_context()` to keep it. Calls
without one are counted under `NOBODY`, and have no budget.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Self, TypeVar

import msgspec

from reverie.memory_graph.errors import BudgetExceededError, ModelError, ModelFailedError
from reverie.memory_graph.ids import Key
from reverie.models.language import HostedModel, Weighed
from reverie.models.protocol import ChatMessage, Completion, LanguageModel, LanguageModelInfo

T = TypeVar("T")

NOBODY = Key("", "")  # no world or user is named so
OTHERS = Key("", "others")  # users whose own counters were given up
MAX_USERS = 100_000  # with counters of their own
MAX_PURPOSES = 16  # of one user; more are counted as OTHER
OTHER = "other"


class Usage(msgspec.Struct):
    """A sum over calls. `seconds` is time by the wall, waiting for other calls included."""

    calls: int = 0
    failed: int = 0  # of them
    refused: int = 0  # not made, for want of budget; none of `calls`
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0

    @property
    def tokens(self) -> int:
        """Read and written tokens together."""
        return self.prompt_tokens + self.completion_tokens

    def add(self, other: Usage) -> None:
        """Add another sum to this one."""
        for name in self.__struct_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class UsageRow(msgspec.Struct, frozen=True):
    """What one user's calls for one purpose have cost."""

    world: str
    user_id: str
    purpose: str
    usage: Usage


class Budget(msgspec.Struct, frozen=True):
    """The most that one user may use, of all purposes together; None is no limit. `tokens` counts
    prompts and answers, and an answer as long as it may get while it is being written;
    `prompt_tokens` counts prompts alone."""

    calls: int | None = None
    tokens: int | None = None
    prompt_tokens: int | None = None

    def narrowed(self, other: Budget | None) -> Budget:
        """Return this budget with what another one says in its place."""
        if other is None:
            return self
        given = {k: v for k, v in msgspec.structs.asdict(other).items() if v is not None}
        return msgspec.structs.replace(self, **given)


class Payer:
    """For whom a block works, and how many calls it may still make.

    Attributes:
        key: the user.
        limit: how many calls the block may make; None is any number.
        budget: what the user's own limits say; it goes before that of the meter.
        refused: calls of the block that were not made, for want of budget.
    """

    def __init__(self, key: Key, calls: int | None, budget: Budget | None = None) -> None:
        self.key = key
        self.limit = calls
        self.budget = budget
        self.refused = 0
        self._left = calls
        self._lock = threading.Lock()

    @property
    def left(self) -> int | None:
        """How many calls are left of the limit."""
        return self._left

    def take(self) -> bool:
        """Take one call; False when none is left."""
        with self._lock:
            if self._left is None:
                return True
            if self._left <= 0:
                return False
            self._left -= 1
            return True


_payer: ContextVar[Payer | None] = ContextVar("reverie_payer", default=None)
_purpose: ContextVar[str] = ContextVar("reverie_purpose", default=OTHER)


@contextmanager
def charged_to(
    world: str, user_id: str, *, calls: int | None = None, budget: Budget | None = None
) -> Iterator[Payer]:
    """Charge the model calls of the block to a user; at most `calls` of them, if given.

    A call over that cap raises ModelFailedError: the work asks for more than it may. `budget` is
    what the user's own limits say; what it leaves open is as the meter has it.
    """
    payer = Payer(Key(world, user_id), calls, budget)
    token = _payer.set(payer)
    try:
        yield payer
    finally:
        _payer.reset(token)


@contextmanager
def purpose(name: str) -> Iterator[None]:
    """Count the model calls of the block under `name` ("extract", "decide", "summarise")."""
    token = _purpose.set(name)
    try:
        yield
    finally:
        _purpose.reset(token)


def calls_left() -> int | None:
    """Return how many calls the cap of `charged_to` still allows; None without a cap."""
    payer = _payer.get()
    return None if payer is None else payer.left


class _Account(msgspec.Struct):
    """What is known of one user. `held` is of calls under way."""

    by_purpose: dict[str, Usage] = {}
    held_calls: int = 0
    held_tokens: int = 0
    held_prompts: int = 0

    def total(self) -> Usage:
        whole = Usage()
        for usage in self.by_purpose.values():
            whole.add(usage)
        return whole


class Meter:
    """Counters and budgets of all users. Safe for threads."""

    def __init__(self, budget: Budget | None = None) -> None:
        """Begin with nothing used; `budget` is that of every user without one of its own."""
        self._budget = budget or Budget()
        self._budgets: dict[Key, Budget] = {}
        self._accounts: OrderedDict[Key, _Account] = OrderedDict()  # used longest ago first
        self._lock = threading.Lock()

    def set_budget(self, world: str, user_id: str, budget: Budget | None) -> None:
        """Give a user a budget of its own; None takes it back."""
        with self._lock:
            if budget is None:
                self._budgets.pop(Key(world, user_id), None)
            else:
                self._budgets[Key(world, user_id)] = budget

    def used(self, world: str, user_id: str) -> Usage:
        """Return what a user has used, of all purposes."""
        with self._lock:
            account = self._accounts.get(Key(world, user_id))
            return Usage() if account is None else account.total()

    def total(self) -> Usage:
        """Return what all users have used."""
        whole = Usage()
        for row in self.rows():
            whole.add(row.usage)
        return whole

    def rows(self, world: str | None = None) -> list[UsageRow]:
        """Return all counters, or those of a world, sorted; for `restore`, too."""
        with self._lock:
            return [
                UsageRow(*key, name, msgspec.structs.replace(account.by_purpose[name]))
                for key, account in sorted(self._accounts.items())
                if world is None or key.world == world
                for name in sorted(account.by_purpose)
            ]

    def restore(self, rows: Sequence[UsageRow]) -> None:
        """Add counters that were kept from an earlier run."""
        with self._lock:
            for row in rows:
                self._usage(Key(row.world, row.user_id), row.purpose).add(row.usage)

    def reset(self, world: str, user_id: str) -> None:
        """Set a user's counters to nothing, as for a new day; also to forget the user."""
        with self._lock:
            account = self._accounts.get(Key(world, user_id))
            if account is None:
                return
            account.by_purpose.clear()
            if not account.held_calls:
                del self._accounts[Key(world, user_id)]

    # -- for MeteredLanguageModel ------------------------------------------------------

    def limits_tokens(self, key: Key) -> bool:
        """Return whether the tokens of a user are limited, so that prompts must be counted."""
        budget = self._budget_of(key)
        return budget.tokens is not None or budget.prompt_tokens is not None

    def hold(self, key: Key, tokens: int, prompt_tokens: int = 0) -> None:
        """Set a call and its tokens aside before it is made; `prompt_tokens` are among them.

        Raises:
            BudgetExceededError: the user's budget does not allow for it.
        """
        with self._lock:
            account = self._account(key)
            budget, used = self._budget_of(key), account.total()
            wanted = {
                "calls": (used.calls + account.held_calls + 1, budget.calls),
                "tokens": (used.tokens + account.held_tokens + tokens, budget.tokens),
                "prompt_tokens": (
                    used.prompt_tokens + account.held_prompts + prompt_tokens,
                    budget.prompt_tokens,
                ),
            }
            for name, (needed, limit) in wanted.items():
                if limit is not None and needed > limit:
                    self._usage(key, _purpose.get()).refused += 1
                    if (payer := _payer.get()) is not None:
                        payer.refused += 1
                    msg = (
                        f"user {key.user_id!r} has a budget of {limit:,} model {name}; it is spent"
                    )
                    raise BudgetExceededError(
                        msg, world=key.world, user_id=key.user_id, budget=name, limit=limit
                    )
            account.held_calls += 1
            account.held_tokens += tokens
            account.held_prompts += prompt_tokens

    def settle(self, key: Key, tokens: int, usage: Usage | None, prompt_tokens: int = 0) -> None:
        """Give back what `hold` set aside, and count what the call cost; None: it was not made."""
        with self._lock:
            account = self._account(key)
            account.held_calls -= 1
            account.held_tokens -= tokens
            account.held_prompts -= prompt_tokens
            if usage is not None:
                self._usage(key, _purpose.get()).add(usage)

    def _budget_of(self, key: Key) -> Budget:
        if key in {NOBODY, OTHERS}:
            return Budget()
        found, payer = self._budgets.get(key, self._budget), _payer.get()
        return found if payer is None or payer.key != key else found.narrowed(payer.budget)

    def _account(self, key: Key) -> _Account:
        account = self._accounts.get(key)
        if account is None:
            account = self._accounts[key] = _Account()
            self._bound()
        self._accounts.move_to_end(key)
        return account

    def _usage(self, key: Key, name: str) -> Usage:
        by_purpose = self._account(key).by_purpose
        if name not in by_purpose and len(by_purpose) >= MAX_PURPOSES:
            name = OTHER
        return by_purpose.setdefault(name, Usage())

    def _bound(self) -> None:
        """Give up the counters of the user who called longest ago, unless a budget needs them."""
        if len(self._accounts) <= MAX_USERS or self._budget != Budget():
            return
        for key, account in self._accounts.items():
            if key not in self._budgets and not account.held_calls and key != OTHERS:
                del self._accounts[key]
                self._accounts.setdefault(OTHERS, _Account()).by_purpose.setdefault(
                    OTHER, Usage()
                ).add(account.total())
                return


class MeteredLanguageModel:
    """A `HostedModel` in front of another, which counts, and keeps to budgets and caps."""

    def __init__(
        self,
        inner: LanguageModel,
        meter: Meter,
        *,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """Wrap `inner`; `clock` tells seconds."""
        self._inner = inner
        self.meter = meter
        self._clock = clock

    @property
    def info(self) -> LanguageModelInfo:
        """Identity and bounds of the inner model."""
        return self._inner.info

    def complete(
        self,
        prompt: str | Sequence[ChatMessage],
        *,
        max_tokens: int,
        grammar: str | None = None,
        stop: Sequence[str] = (),
        adapter: str | None = None,
    ) -> Completion:
        """Return what the inner model writes.

        Raises:
            BudgetExceededError: the payer's budget does not allow for it; nothing was run.
            ModelFailedError: the cap of `charged_to` is reached, or as the inner model.
        """
        return self._pay(
            lambda: self._count(prompt),
            max_tokens,
            lambda: self._inner.complete(
                prompt, max_tokens=max_tokens, grammar=grammar, stop=stop, adapter=adapter
            ),
            lambda done: Usage(
                prompt_tokens=done.prompt_tokens, completion_tokens=done.completion_tokens
            ),
        )

    def choose(
        self, prompts: Sequence[str], choices: Sequence[str], *, adapter: str | None = None
    ) -> list[list[float]]:
        """Return what the inner model gives; counts as one call. Raises as `complete`."""
        return self.weigh(prompts, choices, adapter=adapter).rows

    def weigh(
        self, prompts: Sequence[str], choices: Sequence[str], *, adapter: str | None = None
    ) -> Weighed:
        """Do as `choose`, and tell how many tokens the prompts had."""

        def ask() -> Weighed:
            if isinstance(self._inner, HostedModel):
                return self._inner.weigh(prompts, choices, adapter=adapter)
            rows = self._inner.choose(prompts, choices, adapter=adapter)
            return Weighed(rows, sum(map(self._count, prompts)))

        return self._pay(
            lambda: sum(map(self._count, prompts)),
            0,
            ask,
            lambda done: Usage(prompt_tokens=done.prompt_tokens),
        )

    def count_tokens(self, text: str) -> int:
        """Return what the inner model counts, free of charge."""
        return self._inner.count_tokens(text)

    def count_prompt(self, prompt: str | Sequence[ChatMessage]) -> int:
        """Return what the inner model counts, free of charge."""
        return self._count(prompt)

    def clear(self) -> None:
        """Let the inner model forget earlier prompts."""
        if isinstance(self._inner, HostedModel):
            self._inner.clear()

    def close(self) -> None:
        """Close the inner model."""
        self._inner.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _count(self, prompt: str | Sequence[ChatMessage]) -> int:
        if isinstance(self._inner, HostedModel):
            return self._inner.count_prompt(prompt)
        if isinstance(prompt, str):
            return self._inner.count_tokens(prompt)
        return sum(self._inner.count_tokens(message.content) for message in prompt)

    def _pay(
        self,
        read: Callable[[], int],
        written: int,
        ask: Callable[[], T],
        cost: Callable[[T], Usage],
    ) -> T:
        """Ask, within the budgets, for what reads so many tokens and writes so many at most."""
        payer = _payer.get()
        key = NOBODY if payer is None else payer.key
        prompt_tokens = read() if (is_limited := self.meter.limits_tokens(key)) else 0
        tokens = prompt_tokens + written if is_limited else 0
        self.meter.hold(key, tokens, prompt_tokens)
        usage: Usage | None = None
        begin = self._clock()
        try:
            if payer is not None and not payer.take():
                msg = f"this work has made the {payer.limit} model calls that it may make"
                raise ModelFailedError(msg, calls=payer.limit)
            try:
                answer = ask()
            except ModelError:  # it was at work: what it may have used is counted
                usage = Usage(
                    1,
                    failed=1,
                    prompt_tokens=prompt_tokens,
                    completion_tokens=tokens - prompt_tokens,
                    seconds=self._clock() - begin,
                )
                raise
            usage = cost(answer)
            usage.calls, usage.seconds = 1, self._clock() - begin
        finally:
            self.meter.settle(key, tokens, usage, prompt_tokens)
        return answer
