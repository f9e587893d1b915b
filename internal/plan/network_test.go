// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"
)

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
		"API servers call converters":          {"converter", anybody, 9443, true, true},
		"nobody reads converters' metrics":     {"converter", anybody, 8080, true, false},
		"Prometheus reads converters' metrics": {"converter", prometheus, 8080, true, true},
		"converters have no other port":        {"converter", prometheus, 6060, true, false},
		"converters ask no API server":         {"converter", anybody, 443, false, false},
		"an image is called":                   {"image", anybody, 9443, true, true},
		"an image asks whom it likes":          {"image", anybody, 443, false, true},
		"nobody reads the manager's metrics":   {"manager", anybody, 8443, true, false},
		"Prometheus reads the manager's":       {"manager", prometheus, 8443, true, true},
		"the manager has no other port":        {"manager", prometheus, 9443, true, false},
		"the manager asks API servers":         {"manager", anybody, 6443, false, true},
		"the manager asks converters":          {"manager", anybody, 9443, false, true},
		"nobody reads migrations' metrics":     {"migration", anybody, 8080, true, false},
		"Prometheus reads migrations' metrics": {"migration", prometheus, 8080, true, true},
		"migrations have no other port":        {"migration", prometheus, 9443, true, false},
		"a migration asks API servers":         {"migration", anybody, 6443, false, true},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			pod := pods[test.pod]
			pod.Labels = merged(pod.Labels, test.pod)
			if diff := cmp.Diff(test.want, allowed(t, policies, pod, test.from, test.port, test.in)); diff != "" {
				t.Errorf("allowed (-want +got):\n%s", diff)
			}
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
	text, err := os.ReadFile("../../config/components/network-policies/network_policies.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var policies []networkingv1.NetworkPolicy
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		policy := networkingv1.NetworkPolicy{}
		if err := yaml.UnmarshalStrict([]byte(document), &policy); err != nil {
			t.Fatal(err)
		}
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
	if err != nil {
		t.Fatal(err)
	}
	return chosen.Matches(of)
}
