// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/workload"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/golden"
)

// TestPods records every pod template. Kubernetes' own code judges them by the
// restricted Pod Security Standard in internal/test/standards; they satisfy more: a file
// system that cannot be written, bounded resources, and no token where none is needed.
func TestPods(t *testing.T) {
	templates := podTemplates(t)
	text, err := yaml.Marshal(templates)
	expect.NoError(t, err)
	golden.Check(t, string(text), "pods.yaml")
	// What a converter may take is in the policy, whose defaults the API server fills in.
	ours := map[string]bool{"manager": true, "migration": true}
	for name, template := range templates {
		t.Run(name, func(t *testing.T) {
			for _, container := range template.Spec.Containers {
				if is := container.SecurityContext.ReadOnlyRootFilesystem; name != "image" && (is == nil || !*is) {
					t.Error("its root file system can be written")
				}
				if bounds := container.Resources; ours[name] && (bounds.Requests.Cpu().IsZero() || bounds.Requests.Memory().IsZero() || bounds.Limits.Memory().IsZero()) {
					t.Errorf("its resources are %v", bounds)
				}
			}
			asksAPIServers := name == "manager" || name == "migration"
			if mounts := template.Spec.AutomountServiceAccountToken; !asksAPIServers && (mounts == nil || *mounts) {
				t.Error("it mounts a token")
			}
		})
	}
}

// podTemplates are those of all pods that there are.
func podTemplates(t *testing.T) map[string]corev1.PodTemplateSpec {
	t.Helper()
	manager := &appsv1.Deployment{}
	text, err := os.ReadFile("../../../config/manager/deployment.yaml")
	expect.NoError(t, err)
	expect.NoError(t, yaml.UnmarshalStrict(text, manager))
	migrating, image := newWorld(t, policyYAML), newWorld(t, imageYAML)
	migrating.migrating()
	image.applyCRD(bothStoredNew)
	image.converge()
	all := map[string]corev1.PodTemplateSpec{
		"manager":   manager.Spec.Template,
		"converter": podsOf(t, active(t)),
		"image":     podsOf(t, image),
		"migration": migrating.observed.Runs[0].Job.Spec.Template,
	}
	return all
}

func podsOf(t *testing.T, w *world) corev1.PodTemplateSpec {
	t.Helper()
	for _, s := range w.plan().Steps {
		applied, ok := s.(step.Apply)
		if !ok {
			continue
		}
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(applied.Object)
		expect.NoError(t, err)
		deployment := &appsv1.Deployment{}
		if content["kind"] != "Deployment" {
			continue
		}
		expect.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(content, deployment))
		return deployment.Spec.Template
	}
	t.Fatal("there is no Deployment")
	return corev1.PodTemplateSpec{}
}

// seen are the measured numbers in a row of the table.
var seen = regexp.MustCompile(`(\d+) MiB`)

// TestResourcesAreDocumented: the table of hardening.md is the one place with requests
// and limits, beside what was measured. It says what is installed, what policies have
// by default, and what migrations get; and the limits leave room above what was seen.
func TestResourcesAreDocumented(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "api", "docs", "hardening.md"))
	expect.NoError(t, err)
	pods := podTemplates(t)
	for name, has := range map[string]corev1.ResourceRequirements{
		"manager":       pods["manager"].Spec.Containers[0].Resources,
		"converter pod": defaultResources(t),
		"migration":     pods["migration"].Spec.Containers[0].Resources,
	} {
		t.Run(name, func(t *testing.T) {
			_, row, found := strings.Cut(string(text), "\n| "+name+" |")
			if !found {
				t.Fatal("hardening.md has no row for it")
			}
			row, _, _ = strings.Cut(row, "\n")
			cells := strings.Split(row, " | ")
			want := []string{fmt.Sprintf(" %s, %s", has.Requests.Cpu(), has.Requests.Memory()), has.Limits.Memory().String()}
			expect.Equal(t, "requests and limit, installed and documented", want, cells[:min(2, len(cells))])
			expect.Equal(t, "what is limited (memory) and requested (CPU and memory)", [2]int{1, 2}, [2]int{len(has.Limits), len(has.Requests)})
			measured := seen.FindAllStringSubmatch(row, -1)
			expect.Equal(t, "something was measured", true, len(measured) > 0)
			for _, number := range measured {
				if most := resource.MustParse(number[1] + "Mi"); most.Cmp(*has.Limits.Memory()) >= 0 {
					t.Errorf("%s was seen, and the limit is %s", number[0], has.Limits.Memory())
				}
			}
		})
	}
}

// defaultResources are those of converter pods whose policy says nothing of them, as its field says.
func defaultResources(t *testing.T) corev1.ResourceRequirements {
	t.Helper()
	defaults := workload.Default(workload.Workload{}.Spec).Resources
	says := fmt.Sprintf("requests of %s and %s and a limit of %s", defaults.Requests.Cpu(), defaults.Requests.Memory(), defaults.Limits.Memory())
	field := installed(t).Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["workload"].Properties["dedicated"].Properties["resources"]
	expect.Contains(t, "the description of workload.dedicated.resources", strings.Join(strings.Fields(field.Description), " "), says)
	return corev1.ResourceRequirements{Requests: defaults.Requests, Limits: defaults.Limits}
}

// installed is the definition of ConversionPolicy.
func installed(t *testing.T) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "config", "crd", "bases", "conversion-operator.io_conversionpolicies.yaml"))
	expect.NoError(t, err)
	crd := &apiextensionsv1.CustomResourceDefinition{}
	read(t, string(text), crd)
	return crd
}

// TestNetworkPolicies: of the pods that the operator makes, each is reached at the
// ports that it listens at, by who may, and reaches what it asks.
func TestNetworkPolicies(t *testing.T) {
	anybody, prometheus := labels.Set{}, labels.Set{"metrics": "enabled"}
	pods := podTemplates(t)
	policies := networkPolicies(t)
	cases := map[string]struct {
		pod  string
		from labels.Set
		port int
		in   bool
		want bool
	}{
		"API servers call converters":           {"converter", anybody, 9443, true, true},
		"no client reads converters' metrics":   {"converter", anybody, 8080, true, false},
		"Prometheus reads converters' metrics":  {"converter", prometheus, 8080, true, true},
		"converters have no other port":         {"converter", prometheus, 6060, true, false},
		"converters ask no API server":          {"converter", anybody, 443, false, false},
		"an image is called":                    {"image", anybody, 9443, true, true},
		"an image asks whom it likes":           {"image", anybody, 443, false, true},
		"no client reads the manager's metrics": {"manager", anybody, 8443, true, false},
		"Prometheus reads the manager's":        {"manager", prometheus, 8443, true, true},
		"the manager has no other port":         {"manager", prometheus, 9443, true, false},
		"the manager asks API servers":          {"manager", anybody, 6443, false, true},
		"the manager asks converters":           {"manager", anybody, 9443, false, true},
		"no client reads migrations' metrics":   {"migration", anybody, 8080, true, false},
		"Prometheus reads migrations' metrics":  {"migration", prometheus, 8080, true, true},
		"migrations have no other port":         {"migration", prometheus, 9443, true, false},
		"a migration asks API servers":          {"migration", anybody, 6443, false, true},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			pod := pods[test.pod]
			pod.Labels = merged(pod.Labels, test.pod)
			expect.Equal(t, "allowed", test.want, allowed(t, policies, pod, test.from, test.port, test.in))
		})
	}
}

// merged are the labels of a pod as it is installed: config/default adds one to all.
func merged(own map[string]string, pod string) map[string]string {
	if pod != "manager" {
		return own
	}
	return labels.Merge(own, labels.Set{"app.kubernetes.io/name": "conversion-operator"})
}

func networkPolicies(t *testing.T) []networkingv1.NetworkPolicy {
	t.Helper()
	text, err := os.ReadFile("../../../config/components/network-policies/network_policies.yaml")
	expect.NoError(t, err)
	var policies []networkingv1.NetworkPolicy
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		policy := networkingv1.NetworkPolicy{}
		expect.NoError(t, yaml.UnmarshalStrict([]byte(document), &policy))
		policies = append(policies, policy)
	}
	return policies
}

// allowed is what Kubernetes says of NetworkPolicies: those that select a pod add
// up, and a pod that none selects is open.
func allowed(t *testing.T, policies []networkingv1.NetworkPolicy, pod corev1.PodTemplateSpec, peer labels.Set, port int, in bool) bool {
	t.Helper()
	selected := false
	for _, policy := range policies {
		kind, rules := networkingv1.PolicyTypeEgress, egress(policy)
		if in {
			kind, rules = networkingv1.PolicyTypeIngress, policy.Spec.Ingress
		}
		if !slices.Contains(policy.Spec.PolicyTypes, kind) || !selects(t, &policy.Spec.PodSelector, pod.Labels) {
			continue
		}
		selected = true
		for _, rule := range rules {
			if isPeer(t, rule.From, peer) && isPort(rule.Ports, pod.Spec.Containers[0], port) {
				return true
			}
		}
	}
	return !selected
}

// egress is written as ingress, whose rules have the same form.
func egress(policy networkingv1.NetworkPolicy) []networkingv1.NetworkPolicyIngressRule {
	var rules []networkingv1.NetworkPolicyIngressRule
	for _, rule := range policy.Spec.Egress {
		rules = append(rules, networkingv1.NetworkPolicyIngressRule{From: rule.To, Ports: rule.Ports})
	}
	return rules
}

func isPeer(t *testing.T, peers []networkingv1.NetworkPolicyPeer, namespace labels.Set) bool {
	t.Helper()
	return len(peers) == 0 || slices.ContainsFunc(peers, func(peer networkingv1.NetworkPolicyPeer) bool {
		return selects(t, peer.NamespaceSelector, namespace)
	})
}

func isPort(ports []networkingv1.NetworkPolicyPort, container corev1.Container, port int) bool {
	return slices.ContainsFunc(ports, func(each networkingv1.NetworkPolicyPort) bool {
		switch {
		case *each.Protocol != corev1.ProtocolTCP:
			return false
		case each.Port.Type == intstr.String:
			return slices.ContainsFunc(container.Ports, func(p corev1.ContainerPort) bool {
				return p.Name == each.Port.StrVal && int(p.ContainerPort) == port
			})
		case each.EndPort != nil:
			return each.Port.IntValue() <= port && port <= int(*each.EndPort)
		}
		return each.Port.IntValue() == port
	})
}

func selects(t *testing.T, selector *metav1.LabelSelector, of labels.Set) bool {
	t.Helper()
	chosen, err := metav1.LabelSelectorAsSelector(selector)
	expect.NoError(t, err)
	return chosen.Matches(of)
}
