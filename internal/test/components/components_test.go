// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package components

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/podspec"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/workload"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

const config = "../../../config"

// built has the objects of a kustomization by kind and name, as YAML.
type built map[string][]byte

// build renders the default with components, as a user would.
func build(t *testing.T, components ...string) built {
	t.Helper()
	return render(t, kustomization(t, absolute(t, "default"), "", components...))
}

// absolute returns the path of a folder of config.
func absolute(t *testing.T, path ...string) string {
	t.Helper()
	folder, err := filepath.Abs(filepath.Join(append([]string{config}, path...)...))
	expect.NoError(t, err)
	return folder
}

func namesIn(t *testing.T, folder string) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(config, folder))
	expect.NoError(t, err)
	found := make([]string, 0, len(entries))
	for _, entry := range entries {
		found = append(found, entry.Name())
	}
	return found
}

// kustomization writes a kustomization of a folder with components and more text, and returns its
// folder.
func kustomization(t *testing.T, of, more string, components ...string) string {
	t.Helper()
	folder := t.TempDir()
	to := func(path string) string {
		relative, err := filepath.Rel(folder, path)
		expect.NoError(t, err)
		return relative
	}
	text := more + "resources:\n- " + to(of) + "\n"
	if len(components) > 0 {
		text += "components:\n"
	}
	for _, component := range components {
		text += "- " + to(absolute(t, "components", component)) + "\n"
	}
	expect.NoError(t, os.WriteFile(filepath.Join(folder, "kustomization.yaml"), []byte(text), 0o600))
	return folder
}

// render runs kustomize on a folder.
func render(t *testing.T, folder string) built {
	t.Helper()
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	expect.NoError(t, err)
	all := built{}
	for _, resource := range resources.Resources() {
		object, err := resource.AsYAML()
		expect.NoError(t, err)
		all[resource.GetKind()+" "+resource.GetName()] = object
	}
	return all
}

func (b built) read(t *testing.T, name string, into any) {
	t.Helper()
	text, found := b[name]
	if !found {
		t.Fatalf("there is no %s", name)
	}
	expect.NoError(t, yaml.Unmarshal(text, into))
}

// TestMonitoringOnlyAdds: the components for monitoring change no other object, and what they add is in the
// operator's namespace, where monitors look for pods.
func TestMonitoringOnlyAdds(t *testing.T) {
	without := build(t)
	added := 0
	for name, object := range build(t, "prometheus", "grafana") {
		if before, found := without[name]; found {
			expect.Equal(t, name, string(before), string(object))
			continue
		}
		added++
		var meta metav1.PartialObjectMetadata
		expect.NoError(t, yaml.Unmarshal(object, &meta))
		if meta.Namespace != "conversion-system" && !strings.HasPrefix(name, "Cluster") {
			t.Errorf("%s is in the namespace %q", name, meta.Namespace)
		}
	}
	expect.Equal(t, "something is added", true, added > 0)
}

// monitor is a ServiceMonitor or a PodMonitor.
type monitor struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     struct {
		Selector  metav1.LabelSelector `json:"selector"`
		Endpoints []endpoint           `json:"endpoints"`
		Pods      []endpoint           `json:"podMetricsEndpoints"`
	} `json:"spec"`
}

type endpoint struct {
	Port            string `json:"port"`
	Scheme          string `json:"scheme"`
	BearerTokenFile string `json:"bearerTokenFile"`
	TLSConfig       struct {
		InsecureSkipVerify bool   `json:"insecureSkipVerify"`
		ServerName         string `json:"serverName"`
		CA                 struct {
			Secret struct{ Name, Key string } `json:"secret"`
		} `json:"ca"`
	} `json:"tlsConfig"`
}

func (m monitor) selects(t *testing.T, of map[string]string) bool {
	t.Helper()
	selector, err := metav1.LabelSelectorAsSelector(&m.Spec.Selector)
	expect.NoError(t, err)
	return selector.Matches(labels.Set(of))
}

// TestManagerIsFound: the ServiceMonitor selects the manager's Service, a port of the manager, and
// the required token.
func TestManagerIsFound(t *testing.T) {
	objects := build(t, "prometheus")
	var found monitor
	var service corev1.Service
	var manager appsv1.Deployment
	objects.read(t, "ServiceMonitor conversion-operator", &found)
	objects.read(t, "Service conversion-operator-metrics", &service)
	objects.read(t, "Deployment conversion-operator", &manager)
	expect.Equal(t, "the ServiceMonitor selects the Service", true, found.selects(t, service.Labels))
	template := manager.Spec.Template
	expect.Equal(t, "the Service selects managers", true, labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(template.Labels)))
	if labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(names.Labels("crontabs.example.com", names.ConverterComponent))) {
		t.Error("the Service selects converters, too")
	}
	var want endpoint
	want.Port, want.Scheme, want.BearerTokenFile = "metrics", "https", "/var/run/secrets/kubernetes.io/serviceaccount/token"
	want.TLSConfig.InsecureSkipVerify = true
	expect.Equal(t, "endpoints", []endpoint{want}, found.Spec.Endpoints)
	target := service.Spec.Ports[0].TargetPort.StrVal
	if !slices.ContainsFunc(template.Spec.Containers[0].Ports, func(port corev1.ContainerPort) bool { return port.Name == target }) {
		t.Errorf("the manager has no port %q", target)
	}
	_, has := objects["ClusterRole conversion-operator-metrics-reader"]
	expect.Equal(t, "the ClusterRole that rbac.yaml binds is there", true, has)
}

// TestPodsAreFound: each PodMonitor selects the operator's pods of its kind, for any policy, and no
// others.
func TestPodsAreFound(t *testing.T) {
	objects := build(t, "prometheus")
	for name, component := range map[string]string{"converters": names.ConverterComponent, "migrations": names.MigrationComponent} {
		var found monitor
		objects.read(t, "PodMonitor conversion-operator-"+name, &found)
		for _, of := range []string{names.ConverterComponent, names.MigrationComponent, names.VerificationComponent, "manager"} {
			expect.Equal(t, name+" selects the pods of "+of, of == component, found.selects(t, names.Labels("crontabs.example.com", of)))
		}
		expect.Equal(t, name+": endpoints", []endpoint{{Port: "metrics"}}, found.Spec.Pods)
	}
}

// TestCritical: the manager, from which other pods inherit, has the priority class that the quota is for.
func TestCritical(t *testing.T) {
	objects := build(t, "critical")
	var manager appsv1.Deployment
	var quota corev1.ResourceQuota
	objects.read(t, "Deployment conversion-operator", &manager)
	objects.read(t, "ResourceQuota conversion-operator-critical", &quota)
	const class = "system-cluster-critical"
	expect.Equal(t, "class of the manager", class, manager.Spec.Template.Spec.PriorityClassName)
	expect.Equal(t, "classes of the quota", []string{class}, quota.Spec.ScopeSelector.MatchExpressions[0].Values)
	expect.Equal(t, "namespace of the quota", manager.Namespace, quota.Namespace)
}

// TestEveryComponentIsDocumented: each component has a row in the table of installing.md, which
// also says whether there is an overlay for it.
func TestEveryComponentIsDocumented(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(config, "..", "api", "docs", "installing.md"))
	expect.NoError(t, err)
	overlays := namesIn(t, "overlays")
	for _, component := range namesIn(t, "components") {
		overlay := ""
		if slices.Contains(overlays, component) {
			overlay = "yes "
		}
		expect.Contains(t, "api/docs/installing.md", string(page), "\n| `"+component+"` | "+overlay+"| ")
	}
}

// TestNetworkPolicyOfOneWorkload: an exported converter has the traffic that the component allows to all converter pods.
func TestNetworkPolicyOfOneWorkload(t *testing.T) {
	installed := &networkingv1.NetworkPolicy{}
	expect.NoError(t, yaml.UnmarshalStrict(build(t, "network-policies")["NetworkPolicy conversion-operator-converters"], installed))
	own := podspec.ConfigOf[networkingv1.NetworkPolicy](workload.Workload{}.NetworkPolicy())
	installed.Spec.PodSelector = own.Spec.PodSelector
	if diff := cmp.Diff(installed.Spec, own.Spec); diff != "" || len(own.Spec.Ingress) == 0 {
		t.Errorf("traffic (-component +workload):\n%s", diff)
	}
}
