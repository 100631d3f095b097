"""A replica under a load, simulated: one loop over the engine's steps, with requests that arrive, wait and run.

An engine runs what it has admitted: every step gives each running sequence its next token and reads a budget of
prompt tokens beside them, or, in engines that read prompts apart, instead of them. Sequences are admitted in order
while places and the cache allow; where the cache runs full, the one that came last gives up its place and is read
anew. Steps in which nothing starts or ends are taken together, so that time grows with requests, not with tokens.

What is simulated is one replica; all times are seconds. Requests are columns, and an equal seed gives equal requests.
"""

from collections import deque
from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from math import exp, inf, isnan, nan

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from gpucost.errors import NothingFitsError
from gpucost.physics.columns import ColumnStruct, Floats
from gpucost.physics.serving import steps
from gpucost.physics.serving.cases import ServingCase, plain_options
from gpucost.units import MILLI, TERA

_BLOCK_TOKENS = 16.0  # of the cache that engines hand out at once (vLLM: block_size); half of the last one is empty
_SPARE_SHARE = 0.99  # of the cache that those who start may fill, so that those who run grow (vLLM: watermark)
WARMING = 0.1  # of the requests that are sent before anything is counted: they meet an empty replica
_BATCHES = 10  # into which counted times are parted to see how far their percentiles swing
_NOISE = 1.2816  # standard deviations of an 80 % range
_CONTEXTS = 16  # spans into which the lengths of running sequences are cut
_LONGEST_BITS = 21  # prompt chunks are timed at powers of two, up to 2^20 tokens


class StepTimes(Struct, frozen=True):
    """How long an engine's steps take.

    `decode` has a row for each number of running sequences and a column for each mean length, `length_step` apart;
    `alone` and `joined` hold what a chunk of 2^i prompt tokens takes by itself, or adds to a step of 2^j − 1 sequences,
    without its attention: that is `pair_s` for every pair of a token and one before it, at most `window` of them in
    layers of the second kind.
    """

    decode: list[list[float]]
    length_step: float
    alone: list[float]
    joined: list[list[float]]
    pair_s: float = 0.0
    window_pair_s: float = 0.0
    window: float = inf
    arrival_s: float = 0.0  # that the arrival of a request takes
    way_s: float = 0.0  # from a client to the engine and back, which keeps nobody else waiting

    def decode_s(self, running: int, tokens: float) -> float:
        """Return the time of a decode step over sequences that hold so many tokens together."""
        place = tokens / running / self.length_step
        left = min(int(place), len(self.decode[0]) - 2)
        row = self.decode[running]
        return row[left] + (row[left + 1] - row[left]) * (place - left)

    def prompts_s(self, running: int, tokens: float) -> float:
        """Return what prompt tokens take beside running sequences, or by themselves, without their attention."""
        times = self.joined[running.bit_length()] if running else self.alone
        power = max(int(tokens).bit_length() - 1, 0)
        low, high = times[power], times[power + 1]
        return low + (high - low) * (tokens / 2.0**power - 1.0)

    def attention_s(self, tokens: float, before: float) -> float:
        """Return the time of attention of a chunk of a prompt, of which so many tokens were read before."""
        mean = before + tokens / 2
        return tokens * (self.pair_s * mean + self.window_pair_s * min(mean, self.window))


class ReplicaEngine(Struct, frozen=True):
    """One replica's engine: its step times, and what it schedules by."""

    times: StepTimes
    seats: int  # sequences that run at once, at most
    cache_tokens: float  # that fit
    budget_tokens: float  # of one step, running sequences included
    fused: bool = True  # prompts join the decode step, in chunks
    reserving: bool = False  # the cache of a whole output is set aside when a sequence starts
    tokens_per_step: float = 1.0  # that a sequence gets: more than one with speculative decoding
    ahead: bool = False  # a step is planned while the one before it runs: what arrives meanwhile joins the next but one


class Requests(ColumnStruct, frozen=True):
    """Requests in the order in which they arrive."""

    arrived_s: Floats
    prompt_tokens: Floats
    output_tokens: Floats
    cached_tokens: Floats  # of the prompt, that the prefix cache holds


class ServedRequests(Struct, frozen=True):
    """What became of requests: NaN where one was not served; and what the replica did meanwhile."""

    sent_s: Floats  # when it reached the server: later than its arrival where clients wait for one another
    first_s: Floats
    done_s: Floats
    output_tokens: Floats
    ended_s: float
    busy_s: float
    prompt_s: float  # of the busy time, that prompts took
    cached_s: float  # of those, that attention to tokens took which the prefix cache held
    steps: int
    preempted: int
    refused: int  # that no empty cache could hold
    peak_running: int
    peak_cache_tokens: float
    stopped: bool  # interrupted, or at its bound: what was served by then stands

    @property
    def served(self) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
        """Which requests were served."""
        return np.isfinite(self.done_s)

    @property
    def ttft_s(self) -> Floats:
        """The time to the first token of those that were served."""
        return (self.first_s - self.sent_s)[self.served]

    @property
    def e2e_s(self) -> Floats:
        """The time from end to end of those that were served."""
        return (self.done_s - self.sent_s)[self.served]

    @property
    def tpot_s(self) -> Floats:
        """The mean time of each further token, of those served that have any."""
        some = self.served & (self.output_tokens > 1)
        times: Floats = (self.done_s - self.first_s)[some] / (self.output_tokens[some] - 1)
        return times


def simulate(
    engine: ReplicaEngine,
    requests: Requests,
    *,
    at_most: int | None = None,
    think_s: Sequence[float] | None = None,
    late_s: float = inf,
    most_late: int | None = None,
    most_steps: int = 50_000_000,
) -> ServedRequests:
    """Serve requests by one replica.

    `at_most` is how many the clients keep open: the next is sent when one is done. `think_s` makes every request the
    first of a user, who asks the next of `requests` so long after an answer: the first `at_most` arrive as they say.
    Ctrl-C ends a run with what it has; so do more than `most_late` first tokens that came later than `late_s`, of the
    last nine tenths of the requests.
    """
    times, fused, seats, e = engine.times, engine.fused, engine.seats, engine.tokens_per_step
    limit, budget, reserving = engine.cache_tokens, engine.budget_tokens, engine.reserving
    prompt: list[float] = requests.prompt_tokens.tolist()
    output: list[float] = requests.output_tokens.tolist()
    fresh: list[float] = np.maximum(requests.prompt_tokens - requests.cached_tokens, 1.0).tolist()
    count = len(prompt)
    first, done, sent = [nan] * count, [nan] * count, [nan] * count
    arrivals = list(zip(requests.arrived_s.tolist(), range(count), strict=True))
    users = count if think_s is None else min(at_most or 1, count)
    upcoming, next_user = arrivals[:users], users
    heapify(upcoming)
    most_open = inf if at_most is None or think_s is not None else at_most
    client: deque[int] = deque()  # requests that the clients hold back
    waiting: deque[int] = deque()
    reading: deque[int] = deque()  # admitted, with prompt tokens left
    left_to_read = [0.0] * count
    ends: list[tuple[int, int]] = []  # of running sequences: the step after which each is done
    last_step = [0] * count  # 0 where it does not run
    remaining = output[:]  # output tokens still to come
    admitted: list[int] = []  # in order; those that have ended are dropped when they are met
    cached: list[float] = requests.cached_tokens.tolist()
    # seconds: when the running step was planned, the clock, and sums of time; then tokens in the cache, and those of
    # the running sequences
    planned = now = busy = of_prompts = of_cached = 0.0
    cache = running_tokens = peak_cache = 0.0
    late, warm = 0, int(WARMING * count)
    step = running = open_requests = preempted = refused = peak_running = loops = 0
    half = _BLOCK_TOKENS / 2  # of the last block of a sequence is empty, on average
    stopped = False

    def size(request: int) -> float:
        """Return the cache that a request takes when it starts."""
        return prompt[request] + half + (remaining[request] if reserving else 1.0)

    def finish(request: int) -> None:
        """Note the end of a request, and let a client send the next one: of the same user, or one held back."""
        nonlocal open_requests, next_user
        done[request] = now
        open_requests -= 1
        if think_s is not None and next_user < count:
            heappush(upcoming, (now + think_s[next_user], next_user))
            next_user += 1
        elif client:
            heappush(upcoming, (now + times.way_s, client.popleft()))

    def end_those_done() -> None:
        """Free the places and the cache of sequences whose last step has been taken."""
        nonlocal running, running_tokens, cache
        while ends and ends[0][0] <= step:
            at, request = heappop(ends)
            if last_step[request] != at:
                continue  # it gave up its place meanwhile
            last_step[request] = 0
            running -= 1
            tokens = prompt[request] + remaining[request]
            running_tokens -= tokens
            cache -= tokens + half
            finish(request)

    def give_up_last() -> None:
        """Take the cache of the sequence that started last; its prompt and what it has written are read anew."""
        nonlocal running, running_tokens, cache, preempted
        while admitted:
            request = admitted.pop()
            if last_step[request]:
                break
        else:
            return
        to_come = min((last_step[request] - step) * e, remaining[request])
        tokens = prompt[request] + remaining[request] - to_come
        running -= 1
        preempted += 1
        running_tokens -= tokens
        cache -= tokens + half
        last_step[request] = 0
        prompt[request], remaining[request] = tokens, max(to_come, 1.0)
        fresh[request] = tokens
        waiting.appendleft(request)

    try:
        while loops < most_steps:
            loops += 1

            # What has arrived joins the queue; an engine that plans ahead sees what was there when it planned.
            seen = planned if engine.ahead and (running or reading) else now
            while upcoming and upcoming[0][0] <= seen:
                at, request = heappop(upcoming)
                if open_requests >= most_open:
                    client.append(request)
                    continue
                sent[request] = at
                open_requests += 1
                waiting.append(request)

            # Those at the front of the queue are admitted while there are places, cache and tokens to read in this
            # step.
            room = budget - (running if fused else 0)
            to_read = sum(left_to_read[request] for request in reading) if reading else 0.0
            while waiting and to_read < room and running + len(reading) < seats:
                request = waiting[0]
                if cache + size(request) > limit * (_SPARE_SHARE if running or reading else 1.0):
                    if running or reading:
                        break
                    refused += 1  # even alone it does not fit
                    open_requests -= 1
                    waiting.popleft()
                    continue
                waiting.popleft()
                reading.append(request)
                left_to_read[request] = fresh[request]
                to_read += fresh[request]
                cache += size(request)
            # Where the next step of all would not fit, one gives way and the step is planned anew.
            if running and not reserving and cache + running * e > limit and running > 1:
                give_up_last()
                continue
            if reading:
                # A step that reads prompts: in chunks beside a decode step, or whole prompts by themselves.
                prompts = read = 0.0
                ready = []
                while reading and (room > 0 or not read):
                    request = reading[0]
                    chunk = min(left_to_read[request], max(room, 1.0)) if fused else left_to_read[request]
                    if not fused and read and chunk > room:
                        break  # whole prompts, as many as the budget holds
                    if left_to_read[request] == fresh[request]:  # its first chunk
                        prompts += times.arrival_s
                    before = prompt[request] - left_to_read[request]
                    pairs = times.attention_s(chunk, before)
                    prompts += pairs
                    if cached[request]:
                        of_cached += pairs - times.attention_s(chunk, max(before - cached[request], 0.0))
                    read += chunk
                    room -= chunk
                    left_to_read[request] -= chunk
                    if left_to_read[request] <= 0:
                        ready.append(reading.popleft())
                prompts += times.prompts_s(running if fused else 0, read)
                step_s = prompts + (times.decode_s(running, running_tokens) if fused and running else 0.0)
                planned = now
                now += step_s
                busy += step_s
                of_prompts += prompts
                if fused and running:
                    step += 1
                    running_tokens += running * e
                    cache += 0.0 if reserving else running * e
                # A prompt that was read to its end gives the first token, and runs from the next step on.
                for request in ready:
                    if isnan(first[request]):
                        first[request] = now  # one that gave up its place and is read anew had it before
                        late += request >= warm and now - sent[request] > late_s
                    admitted.append(request)
                    more = remaining[request] - 1.0
                    if more <= 0:
                        cache -= prompt[request] + half + 1.0
                        finish(request)
                        continue
                    running += 1
                    running_tokens += prompt[request] + 1.0
                    at = step + max(int(-(-more // e)), 1)
                    last_step[request] = at
                    heappush(ends, (at, request))
                peak_running = max(peak_running, running)
                if fused:
                    end_those_done()
                if most_late is not None and late > most_late:
                    stopped = True
                    break
            elif running:
                # Steps in which nothing starts or ends are taken at once, up to the first end, arrival or full cache.
                many = ends[0][0] - step
                pace = times.decode_s(running, running_tokens)
                if upcoming and (not waiting or most_open < inf):
                    many = min(many, int((upcoming[0][0] - now) / pace) + 1)
                if not reserving:
                    many = min(many, int((limit - cache) / (running * e)))
                many = max(many, 1)
                grown = running * e
                last = times.decode_s(running, running_tokens + (many - 1) * grown)
                block_s = many * (pace + last) / 2  # steps grow evenly with the tokens that they read
                now += block_s
                planned = now - last
                busy += block_s
                step += many
                running_tokens += many * grown
                cache += 0.0 if reserving else many * grown
                end_those_done()
            elif upcoming:  # idle until the next arrives
                now = upcoming[0][0]
            elif not waiting:
                break
            peak_cache = max(peak_cache, cache)
        else:
            stopped = True
    except KeyboardInterrupt:
        stopped = True
    return ServedRequests(
        sent_s=np.array(sent),
        first_s=np.array(first) + times.way_s,
        done_s=np.array(done) + times.way_s,
        output_tokens=requests.output_tokens,
        ended_s=now,
        busy_s=busy,
        prompt_s=of_prompts,
        cached_s=of_cached,
        steps=step,
        preempted=preempted,
        refused=refused,
        peak_running=peak_running,
        peak_cache_tokens=peak_cache,
        stopped=stopped,
    )


def sampled(times: Floats, percentile: float | None = None) -> tuple[float, tuple[float, float]]:
    """Return a percentile of times in their order, or their mean, and the 80 % range of its sampling noise.

    Neighbours wait together, so that n times say less than n would: the noise is that of the shares of ten batches
    which lie below the percentile (nonoverlapping batch means, Schmeiser 1982), at least that of times alone.

    >>> point, (low, high) = sampled(np.arange(1000.0) % 100, 50)
    >>> round(point, 1), round(low, 1), round(high, 1)
    (49.5, 47.3, 51.7)
    """
    batches = np.array_split(times, min(_BATCHES, len(times)))
    if percentile is None:
        mean = float(times.mean())
        error = _swing(np.array([float(batch.mean()) for batch in batches]), float(times.std()) / np.sqrt(len(times)))
        return mean, (max(mean - error, float(times.min())), mean + error)
    point = float(np.percentile(times, percentile))
    share = percentile / 100
    alone = np.sqrt(share * (1 - share) / len(times))
    error = 100 * _swing(np.array([float(np.mean(batch <= point)) for batch in batches]), float(alone))
    ends = np.percentile(times, [max(percentile - error, 0.0), min(percentile + error, 100.0)])
    return point, (float(ends[0]), float(ends[1]))


def _swing(batches: Floats, alone: float) -> float:
    """Return the 80 % range of a mean of batches to one side: that of independent times, or what the batches show."""
    spread = float(batches.std(ddof=1)) / np.sqrt(len(batches)) if len(batches) > 1 else 0.0
    return _NOISE * max(spread, alone)


def range_of(point: float, *ends: tuple[float, float]) -> tuple[float, float]:
    """Return a range from several that are independent: their logarithms add up in squares to either side.

    >>> range_of(10.0, (5.0, 20.0), (10.0, 10.0))
    (5.0, 20.0)
    """
    sides = np.abs(np.log(np.maximum(np.array(ends), 1e-12) / point))
    low, high = np.sqrt((sides**2).sum(axis=0)).tolist()
    return point * exp(-low), point * exp(high)


# --- The step times of a deployment.


def engine_of(case: ServingCase, prompt_tokens: float, output_tokens: float, longest_tokens: float) -> ReplicaEngine:
    """Return the engine of one deployment, its step times laid down for sequences up to a length.

    `case` holds one row. The kernels are those of `steps`: a fused engine adds to a step what a prompt's tokens add to
    its products and exchanges, others read prompts by themselves.
    """
    mean = np.array([prompt_tokens]), np.array([output_tokens])
    plain = case.take([0])
    work, placed, rates = plain.work, plain.placement, plain.rates

    # How many run at once: what the engine allows, as far as the cache can hold their prompts.
    data = float(placed.data[0])
    seats = int(min(float(rates.batch_limit[0]) * data, float(rates.seats[0]), 4096.0))
    each = prompt_tokens + output_tokens * (1.0 if rates.reserving[0] else 0.5)
    token_bytes = float(steps.cache_bytes_per_sequence(plain, np.array([each]))[0]) / each
    # capacity knows of tight memory and of engines that take what they need; the free bytes of longer sequences too
    capacity = float(steps.capacity_sequences(plain, *mean)[0])
    cache = max(float(steps.free_memory_bytes(plain)[0]) / token_bytes, capacity * (each + _BLOCK_TOKENS))
    if capacity < 1:
        raise NothingFitsError("the weights and one sequence do not fit this replica")
    large = float(plain.chip.memory_gb[0]) >= steps.LARGE_MEMORY_GB
    budget = (steps.LARGE_PASS_TOKENS if large else steps.PASS_TOKENS) * data
    fits = int(max(cache / max(prompt_tokens, 1.0), 1.0)) + 1
    seats = max(min(seats, fits), 1)

    # Decode steps: timed at batches a quarter of a doubling apart, read off in between for every number of sequences.
    batches = np.unique(np.minimum(np.round(2.0 ** np.arange(0, 12.25, 0.25)), seats))
    length_step = max(longest_tokens, _CONTEXTS) / _CONTEXTS
    lengths = np.arange(_CONTEXTS + 1) * length_step
    running, context = (axis.ravel() for axis in np.meshgrid(batches, lengths, indexing="ij"))
    table = steps.decode_step(plain.take(np.zeros(len(running), np.int64)), running, context).total_s
    grid = table.reshape(len(batches), len(lengths))
    decode = np.stack([np.interp(np.arange(seats + 1), batches, column) for column in grid.T], axis=1)

    # Prompts without their attention, by themselves and beside 2^j − 1 sequences; their attention by the pair of
    # tokens.
    tokens: Floats = np.asarray(2.0 ** np.arange(_LONGEST_BITS), dtype=np.float64)
    alone = _prompt_s(plain, np.zeros(len(tokens)), tokens, fused=False)
    beside = 2.0 ** np.arange(seats.bit_length() + 1) - 1
    beside, many = (axis.ravel() for axis in np.meshgrid(beside, tokens, indexing="ij"))
    joined = _prompt_s(plain, beside, many, fused=True).reshape(-1, len(tokens))
    flop_s = float(placed.data[0] * placed.tensor[0] * plain.chip.half_tflops[0] * TERA * rates.attention[0])
    scale = float(rates.prefill[0] * rates.engine[0]) / flop_s / float(placed.pipeline[0])
    times = StepTimes(
        decode=decode.tolist(),
        length_step=length_step,
        alone=alone.tolist(),
        joined=joined.tolist(),
        pair_s=float(work.full_pair_flop[0] + work.selected_pair_flop[0]) * scale,
        window_pair_s=float(work.window_pair_flop[0]) * scale,
        window=float(work.window_tokens[0]) or inf,
        arrival_s=float(rates.arrival_ms[0]) * MILLI if bool(rates.fused[0]) else 0.0,
        way_s=float(rates.first_ms[0]) * MILLI,
    )
    return ReplicaEngine(
        times=times,
        seats=seats,
        cache_tokens=cache,
        budget_tokens=budget,
        fused=bool(rates.fused[0]),
        reserving=bool(rates.reserving[0]),
        tokens_per_step=float(steps.tokens_per_step(plain.options)[0]),
        ahead=bool(rates.ahead[0]),
    )


def _prompt_s(case: ServingCase, running: Floats, tokens: Floats, *, fused: bool) -> Floats:
    """Return what prompt tokens take without their attention: by themselves, or beside running sequences."""
    rows = case.take(np.zeros(len(tokens), np.int64))
    if not fused:
        plain = replace(rows, options=plain_options(len(tokens)))  # the requests say what the cache holds
        attention = (
            steps.prompt_attention_s(plain, np.ones(len(tokens)), tokens) * rows.rates.prefill * rows.rates.engine
        )
        return np.maximum(steps.prompt_s(plain, tokens) - attention, 1e-9)
    # what the prompt's tokens add to a step: one of them reaches the head, the others only fill the cache
    ones = np.ones(len(tokens))
    staged = np.maximum(running / rows.placement.pipeline, np.minimum(running, 1.0))
    products = steps.linear_s(rows, staged + tokens, staged + ones) - steps.linear_s(rows, staged, staged)
    added = np.maximum(products, 0) + steps.elementwise_s(rows, tokens)
    added = added + np.maximum(steps.exchange_s(rows, staged + tokens) - steps.exchange_s(rows, staged), 0)
    joined: Floats = added * rows.rates.prefill * rows.rates.engine / rows.placement.pipeline
    return joined * steps.fullest_rank(rows)
