package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

const chart = deploy + "/helm"

// helm runs Helm, and returns what it prints.
func helm(t *testing.T, args ...string) (string, error) {
	t.Helper()
	found, err := filepath.Glob("../../.tools/helm-v*")
	needClient(t, err == nil && len(found) > 0, "helm")
	out, err := exec.CommandContext(t.Context(), found[len(found)-1], args...).CombinedOutput()
	return string(out), err
}

func TestTheManifestsAreThoseOfTheChart(t *testing.T) {
	rendered, err := helm(t, "template", "firn", chart, "--values", deploy+"/kubernetes-values.yaml")
	if err != nil {
		t.Fatal(rendered)
	}
	manifests, err := os.ReadFile(filepath.Join(deploy, "kubernetes.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if _, text, _ := strings.Cut(string(manifests), "---\n"); "---\n"+text != rendered {
		t.Error("deploy/kubernetes.yaml is not what the chart renders: run make manifests")
	}
}

// TestTheAlertsOfTheChartAreTheTestedOnes compares the chart's copy, and reads the rules in the object that it renders.
func TestTheAlertsOfTheChartAreTheTestedOnes(t *testing.T) {
	var rules [2]any
	rendered, err := helm(t, "template", "firn", chart, "--set", "prometheusRule.enabled=true", "--show-only", "templates/prometheusrule.yaml")
	if err != nil {
		t.Fatal(rendered)
	}
	var rule struct{ Spec any }
	if err := yaml.Unmarshal([]byte(rendered), &rule); err != nil {
		t.Fatal(err)
	}
	for i, path := range []string{filepath.Join(deploy, "prometheus-alerts.yaml"), filepath.Join(chart, "prometheus-alerts.yaml")} {
		text, err := os.ReadFile(path)
		if err == nil {
			err = yaml.Unmarshal(text, &rules[i])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if !reflect.DeepEqual(rules[0], rules[1]) || !reflect.DeepEqual(rules[0], rule.Spec) {
		t.Error("deploy/helm has other alerts than deploy/prometheus-alerts.yaml: run make manifests")
	}
}

// TestTheChartRendersValidObjects renders it with each value that adds or removes something.
func TestTheChartRendersValidObjects(t *testing.T) {
	if out, err := helm(t, "lint", "--strict", chart); err != nil {
		t.Error(out)
	}
	folder := t.TempDir()
	var all []string
	for i, c := range []struct{ set, has, hasNot string }{
		{"replicas=1", "kind: Deployment, scheme: HTTPS, replicas: 1", "clusterIP, ServiceMonitor, PrometheusRule, NetworkPolicy, annotations"},
		{"workload=StatefulSet", "kind: StatefulSet, serviceName: x-servers, name: x-servers, clusterIP: None", "Deployment, rollingUpdate"},
		{"tls.secret=", "scheme: HTTP", "HTTPS, tls"},
		{"image=localhost:5000/firn,tag=v9,podAnnotations.a=b,pod.nodeSelector.c=d,service.type=LoadBalancer", "image: localhost:5000/firn:v9, a: b, c: d, type: LoadBalancer", ""},
		{"podDisruptionBudget.maxUnavailable=null,podDisruptionBudget.minAvailable=2", "minAvailable: 2", "maxUnavailable: 1"},
		{"serviceMonitor.enabled=true,serviceMonitor.labels.release=p", "kind: ServiceMonitor, port: http, scheme: https, insecureSkipVerify: true, release: p", ""},
		{"serviceMonitor.enabled=true,tls.secret=", "kind: ServiceMonitor, port: http, jobLabel: app.kubernetes.io/name", "https, tls, authorization"},
		{"serviceMonitor.enabled=true,serviceMonitor.authorization.credentials.name=p,serviceMonitor.authorization.credentials.key=token", "authorization:, credentials:, key: token, name: p", ""},
		{"prometheusRule.enabled=true,prometheusRule.labels.release=p", "kind: PrometheusRule, release: p, alert: FirnAllDown", "ServiceMonitor"},
		{"networkPolicy.enabled=true", "kind: NetworkPolicy, policyTypes: [Ingress]", "from:"},
		{"networkPolicy.enabled=true,networkPolicy.from[0].podSelector.matchLabels.role=shop", "from:, role: shop", ""},
	} {
		rendered, err := helm(t, "template", "x", chart, "--set", c.set)
		if err != nil {
			t.Errorf("%s: %s", c.set, rendered)
			continue
		}
		for _, want := range strings.Split(c.has, ", ") {
			if !strings.Contains(rendered, want) {
				t.Errorf("%s: there is no %q in\n%s", c.set, want, rendered)
			}
		}
		for _, not := range strings.Split(c.hasNot, ", ") {
			if not != "" && strings.Contains(rendered, not) {
				t.Errorf("%s: there is %q in\n%s", c.set, not, rendered)
			}
		}
		all = append(all, filepath.Join(folder, fmt.Sprintf("%d.yaml", i)))
		if err := os.WriteFile(all[len(all)-1], []byte(rendered), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	validate(t, "kubernetes_validate", append([]string{"--strict"}, all...)...)
	validate(t, "kubernetes_validate", append([]string{"--strict", "--kubernetes-version", "1.25"}, all...)...) // the oldest in Chart.yaml
	for _, set := range []string{"replica=2", "image=example.org/firn:1", "image=example.org/firn@sha256:0", "replicas=0", "workload=DaemonSet", "config.store=x", "config.listen=x", "config.tls=x", "store.secret=", "pod.containers[0].name=x", "pod.volumes[0].name=x"} {
		if out, err := helm(t, "template", "x", chart, "--set", set); err == nil || !strings.Contains(out, "schema") {
			t.Errorf("%s: %v %s", set, err, out)
		}
	}
}
