// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestAdmits: a node takes a pod if the scheduler could place it there.
func TestAdmits(t *testing.T) {
	cases := map[string]struct {
		change func(*corev1.Node, *corev1.Pod)
		want   bool
	}{
		"a plain node":   {func(*corev1.Node, *corev1.Pod) {}, true},
		"cordoned":       {func(node *corev1.Node, _ *corev1.Pod) { node.Spec.Unschedulable = true }, false},
		"not ready":      {func(node *corev1.Node, _ *corev1.Pod) { node.Status.Conditions[0].Status = corev1.ConditionUnknown }, false},
		"never reported": {func(node *corev1.Node, _ *corev1.Pod) { node.Status.Conditions = nil }, false},
		"a taint":        {func(node *corev1.Node, _ *corev1.Pod) { node.Spec.Taints = taint(corev1.TaintEffectNoSchedule) }, false},
		"a taint that evicts": {func(node *corev1.Node, _ *corev1.Pod) {
			node.Spec.Taints = taint(corev1.TaintEffectNoExecute)
		}, false},
		"a taint that only prefers": {func(node *corev1.Node, _ *corev1.Pod) {
			node.Spec.Taints = taint(corev1.TaintEffectPreferNoSchedule)
		}, true},
		"a tolerated taint": {func(node *corev1.Node, pod *corev1.Pod) {
			node.Spec.Taints = taint(corev1.TaintEffectNoSchedule)
			pod.Spec.Tolerations = []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpExists}}
		}, true},
		"another label than the pod selects": {func(_ *corev1.Node, pod *corev1.Pod) {
			pod.Spec.NodeSelector = map[string]string{"disk": "hdd"}
		}, false},
		"the label that the pod selects": {func(_ *corev1.Node, pod *corev1.Pod) {
			pod.Spec.NodeSelector = map[string]string{"disk": "ssd"}
		}, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			node := readyNode("two")
			node.Labels = map[string]string{"disk": "ssd"}
			pod := &corev1.Pod{}
			c.change(&node, pod)
			expect.Equal(t, "admits", c.want, admits(&node, pod))
		})
	}
}

func taint(effect corev1.TaintEffect) []corev1.Taint {
	return []corev1.Taint{{Key: "dedicated", Value: "batch", Effect: effect}}
}

func readyNode(name string) corev1.Node {
	return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}
}

// paged is an API server with nodes, and one pod, that answers one node at a time.
type paged struct {
	client.Client
	nodes []corev1.Node
	lists int
	fails bool
}

func (*paged) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return nil
}

func (p *paged) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	p.lists++
	if p.fails {
		return errors.New("no")
	}
	asked := &client.ListOptions{}
	asked.ApplyOptions(options)
	at, _ := strconv.Atoi(asked.Continue)
	page, _ := list.(*corev1.NodeList)
	page.Items, page.Continue = p.nodes[at:at+1], ""
	if at+1 < len(p.nodes) {
		page.Continue = strconv.Itoa(at + 1)
	}
	return nil
}

// TestOtherNodes: they are looked for while all pods are on one, page by page, until one is found, and
// not again for a minute.
func TestOtherNodes(t *testing.T) {
	cordoned := readyNode("two")
	cordoned.Spec.Unschedulable = true
	cases := map[string]struct {
		nodes []corev1.Node
		fails bool
		pods  []string
		want  observed.OtherNodes
		lists int
	}{
		"one node":                {[]corev1.Node{readyNode("one")}, false, []string{"one", "one"}, observed.OtherNodes{}, 1},
		"another one":             {[]corev1.Node{readyNode("one"), readyNode("two"), readyNode("three")}, false, []string{"one", "one"}, observed.OtherNodes{Exist: true, Usable: true}, 2},
		"a cordoned one":          {[]corev1.Node{readyNode("one"), cordoned}, false, []string{"one", "one"}, observed.OtherNodes{Exist: true}, 2},
		"pods are on two":         {[]corev1.Node{readyNode("one"), readyNode("two")}, false, []string{"one", "two"}, observed.OtherNodes{}, 0},
		"there is one pod":        {[]corev1.Node{readyNode("one"), readyNode("two")}, false, []string{"one"}, observed.OtherNodes{}, 0},
		"nodes cannot be listed":  {nil, true, []string{"one", "one"}, observed.OtherNodes{}, 2},
		"a usable one comes last": {[]corev1.Node{readyNode("one"), cordoned, readyNode("three")}, false, []string{"one", "one"}, observed.OtherNodes{Exist: true, Usable: true}, 3},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			now := time.Now()
			server := &paged{nodes: c.nodes, fails: c.fails}
			r := &ConversionPolicyReconciler{Client: server, Live: server, Now: func() time.Time { return now }}
			var pods []observed.Pod
			for i, node := range c.pods {
				pods = append(pods, observed.Pod{UID: types.UID(strconv.Itoa(i)), Node: node, Ready: true})
			}
			for range 2 {
				expect.Equal(t, "other nodes", c.want, r.otherNodes(t.Context(), pods))
				slices.Reverse(pods) // as they come from the cache
			}
			expect.Equal(t, "lists", c.lists, server.lists)
			now = now.Add(nodesLife)
			server.nodes, server.fails = slices.Concat(c.nodes, []corev1.Node{readyNode("late")}), false
			if got := r.otherNodes(t.Context(), pods); c.lists > 0 && !got.Usable {
				t.Errorf("a minute later, found %+v", got)
			}
		})
	}
}
