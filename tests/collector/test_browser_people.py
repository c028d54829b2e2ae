"""People in real browsers: a whole crowd, without a network, in many tabs, from elsewhere."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from devices import GOOD, Device, answered, choose, say_yes, send, study
from forked_collector import ForkedCollector
from packed_client import packed_client

from dpfda.cli._group import dpfda
from dpfda.client import RemoteClient
from dpfda.collector.collector_process import CollectorProcess
from dpfda.curves import CurveEncoder
from dpfda.protocol.plan import StudyPlan
from dpfda.report.documents import read

HALF = 30


class Quiet(SimpleHTTPRequestHandler):
    """Any web server of files."""

    def log_message(self, *_: Any) -> None:
        """Nothing."""


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """Another host: its address, and the folder that it serves."""
    folder = tmp_path_factory.mktemp("elsewhere")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", folder
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def collector(
    tmp_path_factory: pytest.TempPathFactory, elsewhere: tuple[str, Path]
) -> Iterator[CollectorProcess]:
    folder = tmp_path_factory.mktemp("browsers")
    found = ForkedCollector(f"sqlite:///{folder}/x.db")
    found.alone, found.origins = True, (elsewhere[0],)
    with found:
        yield found


IN_BROWSERS = """async ({ hash, people }) => {
  const { BrowserStore, Client, setLimit } = await import("/static/client.js");
  const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds / 10));
  return Promise.all(people.map(async ({ values, label }, number) => {
    const store = await BrowserStore.open(`person ${number}`);
    await setLimit(store, 8);
    const client = new Client({ url: location.origin, store, sleep, patience: 600_000 });
    await client.join(hash, { mostEpsilon: 8 });
    const body = JSON.parse(await client.prepare(hash, { curve: { values }, label }));
    return { receipt: await client.send(hash), phase: body.phase };
  }));
}"""


def with_python(url: str, plan: StudyPlan, folder: Path, person: dict[str, Any]) -> None:
    client = RemoteClient(folder, limit_epsilon=8.0, patience=60.0)
    client._sleep = lambda seconds: time.sleep(seconds / 10)
    client.join(url, plan.hash, most_epsilon=8.0)
    client.submit(plan.hash, curve=person["values"], label=person["label"])


def test_thirty_browsers_and_thirty_pythons_make_one_model(
    collector: CollectorProcess, device: Device, tmp_path: Path
) -> None:
    plan = StudyPlan(
        epsilon=8.0,
        n_people=2 * HALF,
        classes=("well", "ill"),
        encoder=CurveEncoder("cosine", n_basis=4, feature_ranges=(-2, 2)),
        design={"name": "answers", "center_known": True, "evaluation_share": 0.2},
    )
    name = collector.create(plan, open=True, deadline=3600)["id"]
    rng = np.random.default_rng(0)
    people = [
        {"values": ((0.7 if k % 2 else -0.7) + rng.normal(0, 0.1, 20)).tolist()}
        | {"label": plan.classes[k % 2]}
        for k in range(2 * HALF)
    ]
    page = device.tab(plan)
    with ThreadPoolExecutor(6) as threads:
        others = [
            threads.submit(with_python, collector.url, plan, tmp_path / str(k), person)
            for k, person in enumerate(people[HALF:])
        ]
        told = page.evaluate(IN_BROWSERS, {"hash": plan.hash, "people": people[:HALF]})
        for other in others:
            other.result()
    assert collector.wait_until(name)["status"] == "finished"
    model = read(collector.read("GET", f"/api/studies/{name}/model"))
    assert model.guarantee.epsilon == 8.0
    # A difference of 14 σ between the classes.
    assert model.predict(np.array([[0.7] * 20, [-0.7] * 20])).tolist() == ["ill", "well"]
    assert len({one["receipt"] for one in told}) == HALF
    for one in told:
        found = collector.request("GET", f"/api/studies/{name}/receipts/{one['receipt']}")
        assert found == {"phase": one["phase"], "counted": True}
    page = device.tab(plan)
    page.wait_for_selector("#problem:not(:empty)")
    assert page.inner_text("#problem") == "This study is over: it takes no more replies."
    assert not page.is_visible("#yours")


KEPT = """async () => {
  const [name, ...others] = await caches.keys();
  const found = await (await caches.open(name)).keys();
  return found.map(({ url }) => url.split("/").at(-1)).sort().concat(others);
}"""


def test_offline_in_the_middle(collector: CollectorProcess, device: Device) -> None:
    plan = study(collector, "In a tunnel")
    page = device.tab(plan)
    choose(page, GOOD)
    assert page.evaluate("caches.keys()") == [], "before a yes nothing is kept"
    body = say_yes(page)
    page.evaluate("navigator.serviceWorker.ready.then(() => null)")
    device.context.set_offline(True)
    page.click("#send")
    page.wait_for_selector("#waiting:has-text('kept in this browser and will be sent')")
    assert page.inner_text("#problem") == "", "nothing is wrong: the reply is sent later"
    assert "spent ε = 4 in 1 study" in page.inner_text("#spent")
    assert answered(collector, plan) == 0
    assert page.inner_text("#bytes") == body
    page.reload()  # the page opens without a network, with the reply that waits in it
    page.wait_for_selector("#leaves:not([hidden])")
    assert page.inner_text("#bytes") == body
    assert page.evaluate(KEPT) == ["client.js", "icon.svg", "page", "take-part.css", "take-part.js",
        "take-part.webmanifest"]  # fmt: skip
    page.click("#send")
    page.wait_for_selector("#waiting:has-text('kept in this browser and will be sent')")
    device.context.set_offline(False)  # nobody presses anything
    page.wait_for_selector("#done:not([hidden])")
    assert answered(collector, plan) == 1
    assert {one for one in device.bodies if one} == {body}
    device.problems.clear()  # the browser itself tells of the request that was lost


def test_a_wait_is_explained(collector: CollectorProcess, device: Device) -> None:
    """The study may answer late, or want nobody for a while: the page showed a gray button only."""
    page = device.tab(study(collector, "One after the other"))
    choose(page, GOOD)
    network = page.context.new_cdp_session(page)
    slow = {"offline": False, "latency": 2500, "downloadThroughput": -1, "uploadThroughput": -1}
    network.send("Network.enable")
    network.send("Network.emulateNetworkConditions", slow)
    page.click("#yes")
    page.wait_for_selector("#creating:has-text('Creating your noisy answer')")
    page.wait_for_selector("#creating:has-text('The study asks people in turn')")
    page.wait_for_selector("#leaves:not([hidden])")
    assert page.text_content("#creating") == ""


def test_back_and_forward_again(collector: CollectorProcess, device: Device) -> None:
    plan = study(collector, "There and back")
    page = device.tab(plan)
    choose(page, GOOD)
    body = say_yes(page)
    page.goto("about:blank")
    page.go_back()
    page.wait_for_selector("#leaves:not([hidden])")
    assert page.inner_text("#bytes") == body
    assert not page.is_visible("#stay"), "data are kept nowhere"
    receipt = send(page)
    page.goto("about:blank")
    page.go_back()
    page.wait_for_selector("#done:not([hidden])")
    assert page.inner_text("#receipt") == receipt
    assert device.posted == ["enrol", "reply"]
    assert answered(collector, plan) == 1


def test_two_tabs_never_overspend(collector: CollectorProcess, device: Device) -> None:
    """Studies of ε = 4 each, and a limit of ε = 5 for all."""
    plans = [study(collector, f"Half {number}") for number in range(2)]
    tabs = [device.tab(plan) for plan in plans]
    for page in tabs:
        choose(page, GOOD)
        page.wait_for_selector("#yes:enabled")
    for page in tabs:
        page.evaluate("document.querySelector('#yes').click()")
    for page in tabs:
        page.wait_for_selector("#leaves:not([hidden]), #problem:not(:empty)")
    drawn = [page for page in tabs if page.is_visible("#leaves")]
    assert len(drawn) == 1
    (refused,) = (page for page in tabs if page not in drawn)
    assert "more than is left of your limit" in refused.inner_text("#problem")
    send(drawn[0])
    assert sum(answered(collector, plan) for plan in plans) == 1


def test_the_limit_is_what_the_person_sets(collector: CollectorProcess, device: Device) -> None:
    cheap = [study(collector, f"Cheap {k}", epsilon=1.0) for k in range(3)]
    page = device.tab(cheap[0])
    choose(page, GOOD)
    for wrong in ("", "0.5", "-1", "much", "0"):
        page.fill("#limit", wrong)
        assert page.is_disabled("#yes")
        assert "limit that this study fits into, ε = 1" in page.inner_text("#missing")
    page.fill("#limit", "2,5")
    say_yes(page)
    send(page)
    page = device.tab(cheap[1])
    page.wait_for_selector("#yours:not([hidden])")
    assert page.is_disabled("#limit")
    assert page.input_value("#limit") == "2.5"
    assert "spent ε = 1 in 1 study, of at most ε = 2.5" in page.inner_text("#spent")
    choose(page, GOOD)
    say_yes(page)
    page = device.tab(cheap[2])
    page.wait_for_selector("#problem:not(:empty)")
    assert "more than is left of your limit of ε = 2.5" in page.inner_text("#problem")
    assert not page.is_visible("#yours")
    assert device.posted == ["enrol", "reply", "enrol"]


def test_from_another_host(
    browser: Any, collector: CollectorProcess, elsewhere: tuple[str, Path]
) -> None:
    host, folder = elsewhere
    made = CliRunner().invoke(dpfda, ["page", str(folder), "--collector", collector.url])
    assert made.exit_code == 0, made.output
    plan = study(collector, "From elsewhere")
    person = Device(browser, host, collector.url)
    page = person.context.new_page()
    page.goto(f"{host}/take-part/index.html")
    page.wait_for_selector("#problem:not(:empty)")
    assert "This link names no study" in page.inner_text("#problem")
    page = person.open(f"/take-part/index.html#study={plan.hash}")
    assert page.inner_text("#who").startswith(f"The operator of {collector.url[7:]}. The organizer")
    choose(page, GOOD)
    body = say_yes(page)
    send(page)
    page.click("#ask")
    page.wait_for_selector("#counted:not(:empty)")
    assert answered(collector, plan) == 1
    assert body in person.bodies
    asked = "fetch('http://127.0.0.1:9/').then(() => 'asked', () => 'refused')"
    assert page.evaluate(asked) == "refused"
    assert any("Content Security Policy" in told for told in person.problems)
    person.context.close()
    (folder / "frame.html").write_text(f"<iframe src='take-part/#study={plan.hash}'></iframe>")
    around = browser.new_page()
    around.goto(f"{host}/frame.html")
    inside = around.frame_locator("iframe").locator("#problem:not(:empty)")
    assert "must not be shown inside another one" in inside.inner_text()
    around.close()
    other = Device(browser, host.replace("127.0.0.1", "localhost"))  # which nobody has allowed
    page = other.context.new_page()
    page.goto(f"/take-part/#study={plan.hash}")
    asked = f"fetch('{collector.url}/api/studies/{plan.hash[:16]}')"
    assert page.evaluate(f"{asked}.then(() => 'heard', () => 'refused')") == "refused"
    page.wait_for_selector("#problem:not(:empty)")
    assert "does not answer" in page.inner_text("#problem")
    other.context.close()


def test_files_for_another_host(tmp_path: Path) -> None:
    told = ["page", str(tmp_path / "site"), "--collector"]
    made = CliRunner().invoke(dpfda, [*told, "https://collector.example/base/"])
    assert made.exit_code == 0, made.output
    page = (tmp_path / "site" / "take-part" / "index.html").read_text(encoding="utf-8")
    assert 'data-collector="https://collector.example/base"' in page
    root = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    assert 'content="0; url=take-part/"' in root
    assert "connect-src https://collector.example;" in page
    odd = ('https://a"b.example', "https://c.example?x", "https://c.example/#study=1")
    for wrong in ("http://collector.example", "collector.example", "x y", *odd):
        said = CliRunner().invoke(dpfda, [*told, wrong])
        assert said.exit_code == 2, said.output
    (tmp_path / "file").write_text("")
    command = ["page", str(tmp_path / "file" / "x"), "--collector", "https://c.example"]
    said = CliRunner().invoke(dpfda, command)
    assert said.exit_code == 2, said.output


EXPORT = "".join(
    f"2026-11-{15 + hour // 24} {hour % 24:02d}:30:00,{62 + hour % 7},{hour}\n"
    for hour in range(30)
)


def test_the_example_reads_a_watch(
    browser: Any, collector: CollectorProcess, elsewhere: tuple[str, Path], tmp_path: Path
) -> None:
    host, folder = elsewhere
    packed_client(tmp_path).rename(folder / "client")
    plan = study(collector, "Of a watch", value_range=(40, 200))
    person = Device(browser, host, collector.url)
    page = person.open(f"/client/example/#collector={collector.url}&study={plan.hash}")
    page.wait_for_function("() => document.querySelector('#said').textContent == 'Choose a file.'")
    assert page.inner_text("#title") == "Of a watch"
    content = f"Start time,Heart rate (bpm),Steps\n{EXPORT}".encode()
    page.set_input_files("#file", {"name": "w.csv", "mimeType": "text/csv", "buffer": content})
    page.select_option("#label", label="ill")
    page.click("#form button")
    page.wait_for_selector("#send")
    assert page.inner_text("#said") == "24 points became these bytes. ε = 4 is spent."
    page.click("#send")
    page.wait_for_function("() => document.querySelector('#said').textContent.startsWith('Sent')")
    assert answered(collector, plan) == 1
    assert page.inner_text("#bytes") in person.bodies
    person.context.close()
