"""Several replicas of a role."""

from __future__ import annotations

import threading
from collections.abc import Callable

from tests.gateway_nginx.conftest import DESK, Started, client
from tests.gateway_nginx.declared import demo, gateway, role
from tests.gateway_nginx.engine import Engine
from tests.gateway_nginx.running import RunningGateway, until
from tests.gateway_nginx.test_limits import WAIT, waiting

BODY = {"model": "architect", "prompt": "x"}
Engines = Callable[..., Engine]


def both(started: Started, *engines: Engine) -> RunningGateway:
    addresses = (engine.address for engine in engines)
    return started(gateway(), demo("desk", DESK, {"architect": role(*addresses)}))


def trouble(running: RunningGateway, engine: Engine) -> str | None:
    replicas = running.status()["demos"]["desk"]["architect"]["replicas"]
    found: str | None = next(
        each["trouble"] for each in replicas if each["address"] == engine.address
    )
    return found


def test_a_new_request_goes_where_the_fewest_are_under_way(
    started: Started, engines: Engines
) -> None:
    one, two = engines(), engines()
    running = both(started, one, two)
    threads = []
    for number in range(1, 9):
        thread = threading.Thread(target=ask, args=(running,))
        thread.start()
        threads.append(thread)
        until(lambda n=number: one.generating + two.generating == n, "it is under way")  # type: ignore[misc]
        assert abs(one.generating - two.generating) <= 1
    one.release.set()
    until(lambda: one.generating == 0, "one is idle again")
    assert two.generating == 4
    with client(running, DESK) as own:
        for _ in range(4):
            own.post("/v1/completions", json=BODY).raise_for_status()
    assert (len(one.seen), len(two.seen)) == (8, 4)
    two.release.set()
    for thread in threads:
        thread.join(10)


def ask(running: RunningGateway) -> None:
    with client(running, DESK) as own:
        own.post("/v1/completions", json=WAIT).raise_for_status()


def test_a_replica_that_fails_its_check_gets_no_traffic_until_it_is_well(
    started: Started, engines: Engines
) -> None:
    one, two = engines(), engines()
    running = both(started, one, two)
    one.healthy = False
    until(lambda: trouble(running, one), "the check has failed", 5)
    assert trouble(running, one) == "health check answered 503"
    with client(running, DESK) as own:
        for _ in range(10):
            own.post("/v1/completions", json=BODY).raise_for_status()
        assert (len(one.seen), len(two.seen)) == (0, 10)
        two.healthy = False
        until(lambda: trouble(running, two), "the check has failed", 5)
        refused = own.post("/v1/completions", json=BODY)
        assert refused.status_code == 503
        assert "health check answered 503" in refused.json()["error"]["message"]
        listed = own.get("/v1/models").json()["data"][0]["berth"]
        assert (listed["serving"], listed["reason"]) == (False, "health check answered 503")
        one.healthy = True
        until(lambda: not trouble(running, one), "the check has passed", 5)
        own.post("/v1/completions", json=BODY).raise_for_status()
    assert (len(one.seen), len(two.seen)) == (1, 10)


def test_a_replica_that_dies_costs_no_new_request(started: Started, engines: Engines) -> None:
    one, two = engines(), engines()
    running = both(started, one, two)
    one.stop()
    with client(running, DESK) as own:
        for _ in range(20):
            own.post("/v1/completions", json=BODY).raise_for_status()
    assert len(two.seen) == 20
    one.start()
    until(lambda: not trouble(running, one), "it is well again", 5)


def test_a_replica_that_refuses_is_not_asked_again_while_another_is_well(
    started: Started, engines: Engines
) -> None:
    one, two = engines(), engines()
    running = both(started, one, two)
    one.refusing, one.healthy = True, False
    with client(running, DESK) as own:
        statuses = [own.post("/v1/completions", json=BODY).status_code for _ in range(30)]
        assert statuses.count(200) >= 29
        assert len(one.seen) <= 1
        one.refusing, one.healthy = False, True
        until(lambda: not trouble(running, one), "the check has passed", 5)
        two.refusing = two.healthy = False
        until(lambda: trouble(running, two), "the check has failed", 5)
        one.refusing = True
        # Nobody else could answer, so it goes on being asked.
        assert [own.post("/v1/completions", json=BODY).status_code for _ in range(3)] == [503] * 3
        assert len(one.seen) >= 3


def test_a_replica_that_has_just_come_up_is_used_within_two_seconds(
    started: Started, engines: Engines
) -> None:
    one = engines()
    running = both(started, one)
    one.stop()
    with client(running, DESK) as own:
        assert own.post("/v1/completions", json=BODY).status_code == 503
        one.start()

        def served() -> bool:
            return own.post("/v1/completions", json=BODY).status_code == 200

        until(served, "it is used", 2.5)


def test_the_count_of_requests_is_back_at_zero_when_they_have_ended(
    started: Started, engines: Engines
) -> None:
    one = engines()
    running = both(started, one)
    with waiting(running, one, 5):
        counted = running.status()["demos"]["desk"]["architect"]["replicas"][0]["requests"]
        assert counted == 5

    def idle() -> bool:
        replica = running.status()["demos"]["desk"]["architect"]["replicas"][0]
        return bool(replica["requests"] == 0)

    until(idle, "nothing is counted")
