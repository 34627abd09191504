"""The Kubernetes manifests: valid by Kubernetes's schemas, and true of the server."""

import json
from pathlib import Path

import kubernetes_validate
import pytest
import typer
import yaml

from keras_transformer.cli import app
from keras_transformer.serving import create_app
from keras_transformer.serving.monitoring import Metrics

ROOT = Path(__file__).parents[1]
MANIFESTS = {path.name: yaml.safe_load(path.read_text()) for path in ROOT.glob("kubernetes/*.yaml")}
KUSTOMIZATION = MANIFESTS.pop("kustomization.yaml")
DEPLOYMENT = MANIFESTS["deployment.yaml"]
POD = DEPLOYMENT["spec"]["template"]
(CONTAINER,) = POD["spec"]["containers"]


@pytest.fixture(scope="module")
def options():
    """What `serve` understands of the container's command."""
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    (entry,) = (x.removeprefix("ENTRYPOINT ") for x in lines if x.startswith("ENTRYPOINT "))
    program, command, *fixed = json.loads(entry)
    assert (program, command) == ("keras-transformer", "serve")
    serve = typer.main.get_command(app).commands["serve"]
    return serve.make_context("serve", [*fixed, *CONTAINER["args"]]).params


@pytest.mark.parametrize("name", MANIFESTS)
def test_manifests_are_valid(name):
    kubernetes_validate.validate(MANIFESTS[name], "1.33", strict=True)


def test_all_manifests_are_applied():
    assert sorted(KUSTOMIZATION["resources"]) == sorted(MANIFESTS)
    assert [x["name"] for x in KUSTOMIZATION["images"]] == [CONTAINER["image"]]


def test_selectors_choose_the_pods():
    labels = POD["metadata"]["labels"].items()
    selectors = [
        DEPLOYMENT["spec"]["selector"]["matchLabels"],
        MANIFESTS["disruption.yaml"]["spec"]["selector"]["matchLabels"],
        MANIFESTS["service.yaml"]["spec"]["selector"],
        MANIFESTS["network.yaml"]["spec"]["podSelector"]["matchLabels"],
    ]
    assert all(selector and selector.items() <= labels for selector in selectors)


def test_the_container_serves_on_its_port(options):
    (port,) = CONTAINER["ports"]
    assert port["containerPort"] == options["port"] and options["host"] == "0.0.0.0"
    (served,) = MANIFESTS["service.yaml"]["spec"]["ports"]
    assert served["targetPort"] == port["name"]
    annotations = POD["metadata"]["annotations"]
    assert annotations["prometheus.io/port"] == str(options["port"])


def test_probes_and_metrics_ask_what_the_server_has():
    paths = create_app(dict).openapi()["paths"]
    for name in ("startupProbe", "readinessProbe", "livenessProbe"):
        asked = CONTAINER[name]["httpGet"]
        assert asked["path"] in paths and asked["port"] == CONTAINER["ports"][0]["name"]
    assert POD["metadata"]["annotations"]["prometheus.io/path"] in paths


def test_pods_have_time_to_finish(options):
    grace = POD["spec"]["terminationGracePeriodSeconds"]
    before = CONTAINER["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert grace > before + options["drain"] >= before + options["timeout"]


def test_the_queue_scales_the_deployment(options):
    spec = MANIFESTS["autoscaler.yaml"]["spec"]
    target = {"apiVersion": DEPLOYMENT["apiVersion"], "kind": DEPLOYMENT["kind"]}
    assert spec["scaleTargetRef"] == target | {"name": DEPLOYMENT["metadata"]["name"]}
    assert "replicas" not in DEPLOYMENT["spec"]
    ((name, level),) = (
        (x["pods"]["metric"]["name"], x["pods"]["target"]["averageValue"]) for x in spec["metrics"]
    )
    assert f"\n{name} 0.0\n" in Metrics().text().decode()
    assert options["tokens_per_batch"] <= int(level) < options["most_waiting"]
    assert name in (ROOT / "docs" / "kubernetes.md").read_text()


def test_models_and_scratch_files_have_their_places(options):
    mounts = {x["name"]: x["mountPath"] for x in CONTAINER["volumeMounts"]}
    assert all(Path(x).is_relative_to(mounts["models"]) for x in options["models"])
    assert {x["name"]: x.get("value") for x in CONTAINER["env"]}["HOME"] == mounts["scratch"]
    assert {x["name"] for x in POD["spec"]["volumes"]} == set(mounts)


def test_the_environment_gives_the_key(options, monkeypatch):
    assert options["api_key"] is None
    secrets = [x for x in CONTAINER["env"] if "secretKeyRef" in x.get("valueFrom", ())]
    ((name, reference),) = ((x["name"], x["valueFrom"]["secretKeyRef"]) for x in secrets)
    assert not reference.get("optional")  # a pod without the secret would serve everybody
    monkeypatch.setenv(name, "secret")
    serve = typer.main.get_command(app).commands["serve"]
    assert serve.make_context("serve", ["folder"]).params["api_key"] == "secret"


def test_pods_have_no_more_than_they_need():
    assert POD["spec"]["automountServiceAccountToken"] is False
    for volume in POD["spec"]["volumes"]:
        assert "emptyDir" not in volume or volume["emptyDir"]["sizeLimit"]
    policy = MANIFESTS["network.yaml"]["spec"]
    assert policy["policyTypes"] == ["Ingress", "Egress"] and policy["egress"] == []
    ((port,),) = (x["ports"] for x in policy["ingress"])
    assert port["port"] == CONTAINER["ports"][0]["name"]
