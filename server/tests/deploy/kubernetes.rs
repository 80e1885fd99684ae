//! The manifests: by the schemas of Kubernetes, and held against the binary.

use serde_json::Value;

use crate::instance::Instance;
use crate::part::folder;
use crate::tools::{done, file, python, waitroom, yaml};

const MANIFESTS: &str = "kubernetes/waitroom.yaml";

fn of_kind(kind: &str) -> Value {
    let found = yaml(&file(MANIFESTS)).into_iter().find(|it| it["kind"] == kind);
    found.unwrap_or_else(|| panic!("there is no {kind}"))
}

#[test]
fn the_manifests_fit_the_schemas_of_an_old_and_a_new_kubernetes() {
    for version in ["1.30", "1.37"] {
        let mut validate = python("kubernetes-validate");
        done(validate.args(["--strict", "-k", version]).arg(file(MANIFESTS)));
    }
}

#[test]
fn their_configuration_is_without_mistakes() {
    let config = of_kind("ConfigMap");
    let text = config["data"]["waitroom.toml"].as_str().expect("a text");
    let folder = folder("configmap");
    let file = folder.join("waitroom.toml");
    std::fs::write(&file, text).expect("a file");
    // As the pod is told where it is.
    done(waitroom().arg("check").arg(&file).env("WAITROOM_CLUSTER_ADVERTISE", "10.0.0.7:7946"));
    let _ = std::fs::remove_dir_all(folder);
}

#[test]
fn probes_ask_what_is_answered_and_a_pod_has_time_to_drain() {
    let config = of_kind("ConfigMap");
    let config = config["data"]["waitroom.toml"].as_str().expect("a text");
    let deployment = of_kind("Deployment");
    let pod = &deployment["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    let ports = container["ports"].as_array().expect("ports");
    for port in ports {
        let (name, number) = (port["name"].as_str().expect("a name"), &port["containerPort"]);
        // The other instances have a section of their own.
        let key = if name == "cluster" { "listen" } else { name };
        let listens = format!("{key} = \"0.0.0.0:{number}\"");
        assert!(config.contains(&listens), "the configuration has no {listens}");
    }
    let server = Instance::start();
    for probe in ["startupProbe", "livenessProbe", "readinessProbe"] {
        let ask = &container[probe]["httpGet"];
        assert_eq!(ask["port"], "public", "{probe}");
        let path = ask["path"].as_str().expect("a path");
        assert_eq!(server.get(path, &[]).status, 200, "{probe}: {path}");
    }
    let seconds = |value: &Value| value.as_u64().expect("seconds");
    let stays = seconds(&container["lifecycle"]["preStop"]["sleep"]["seconds"]);
    let drain = config.lines().find_map(|line| line.strip_prefix("drain = \"")).expect("drain");
    let drain: u64 = drain.trim_end_matches("s\"").parse().expect("in seconds");
    assert!(seconds(&pod["terminationGracePeriodSeconds"]) > stays + drain);
    let budget = of_kind("PodDisruptionBudget");
    let labels = &deployment["spec"]["template"]["metadata"]["labels"];
    for selector in
        [&budget["spec"]["selector"]["matchLabels"], &of_kind("Service")["spec"]["selector"]]
    {
        assert_eq!(selector, labels, "it finds the pods");
    }
    let scaled = of_kind("HorizontalPodAutoscaler");
    assert_eq!(scaled["spec"]["scaleTargetRef"]["name"], deployment["metadata"]["name"]);
}

#[test]
fn nobody_in_the_pod_is_root_and_nothing_but_its_folder_is_written() {
    let deployment = of_kind("Deployment");
    let pod = &deployment["spec"]["template"]["spec"];
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    let guard = &pod["containers"][0]["securityContext"];
    assert_eq!(guard["readOnlyRootFilesystem"], true);
    assert_eq!(guard["allowPrivilegeEscalation"], false);
    let image = std::fs::read_to_string(file("docker/Dockerfile")).expect("it is there");
    let user = pod["securityContext"]["runAsUser"].as_u64().expect("a number");
    assert!(image.contains(&format!("USER {user}:{user}")), "the image has the same user");
}
