//go:build e2e

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/conversion"
	"github.com/conversion-operator/conversion-operator/internal/plan/converter"
	"github.com/conversion-operator/conversion-operator/internal/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/scenarios"
)

// TestChangingRules changes the rules and reverts them while a client reads. No read fails, each
// result is by the old or the new rules, and never by the old ones after the new ones. The watch
// cache of the API server follows, without a failed conversion.
func TestChangingRules(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	crontab := inGroup(t, "rules.example.com")
	applySample(ctx, t, crontab, crontab.CRDStorage)
	applySample(ctx, t, crontab, crontab.Policy)
	waitReady(ctx, t, crontab.CRD(), v1alpha1.ReasonSucceeded)
	draftFromWebhook(ctx, t, crontab)
	const objects = 50
	expect.NoError(t, fleet.Create(ctx, crontab.At(crontab.Old), objects, crontab.Object))
	waitCached(ctx, t, crontab, objects, ":")
	all := allConvert(ctx, t, crontab)

	var answers []string
	reader := fleet.Read(ctx, crontab.At(crontab.Old), crontab.Object(7).GetName(), func(object *unstructured.Unstructured) error {
		answer := fmt.Sprint(object.Object["hostPort"])
		if len(answers) == 0 || answers[len(answers)-1] != answer {
			answers = append(answers, answer)
		}
		return nil
	})
	first, started := getPolicy(ctx, t, crontab.CRD()).Status.Converter.Revision, uids(ctx, t, crontab)
	splitAt(ctx, t, crontab, "|")
	waitCached(ctx, t, crontab, objects, "|")
	splitAt(ctx, t, crontab, ":")
	waitCached(ctx, t, crontab, objects, ":")
	storeOnly(ctx, t, crontab, first)
	if diff := cmp.Diff(started, uids(ctx, t, crontab)); diff != "" {
		t.Errorf("pods were replaced (-before +after):\n%s", diff)
	}
	all()
	reads, err := reader.Stop()
	if err != nil {
		t.Errorf("a read failed after %d: %v", reads, err)
	}
	t.Logf("%d reads", reads)
	if diff := cmp.Diff([]string{"worker-7.example.com:1031", "worker-7.example.com|1031", "worker-7.example.com:1031"}, answers); diff != "" {
		t.Errorf("answers in turn (-want +got):\n%s", diff)
	}
}

// draftFromWebhook drafts the rules by asking a converter pod, by a port-forward through the API server.
func draftFromWebhook(ctx context.Context, t *testing.T, crontab scenarios.CronTab) {
	t.Helper()
	answer, err := teller.Run(ctx, operatorProgram(), "draft", crontab.CRD(), "--probe-webhook", "--timeout-per-request", "1m")
	const want = "- format: {from: .hostPort, template: '{host}:{port}', to: {host: .host, port: .port}}"
	if err != nil || !strings.Contains(answer, want) || !strings.Contains(answer, "# Confirmed by ") {
		t.Errorf("draft lacks a confirmed rule %s: %v\n%s", want, err, answer)
	}
}

// splitAt changes the separator in the policy's rule, and waits until the CRD converts by it.
func splitAt(ctx context.Context, t *testing.T, crontab scenarios.CronTab, separator string) {
	t.Helper()
	policy := getPolicy(ctx, t, crontab.CRD())
	base := policy.DeepCopy()
	policy.Spec.Converter.Declarative.Spokes[0].Rules[0].Format.Template = "{host}" + separator + "{port}"
	expect.NoError(t, cluster.Patch(ctx, policy, client.MergeFrom(base)))
	expect.Eventually(t, "the CustomResourceDefinition converts by the changed rules", func() (bool, string) {
		now := getPolicy(ctx, t, crontab.CRD())
		path := *getCRD(ctx, t, crontab.CRD()).Spec.Conversion.Webhook.ClientConfig.Service.Path
		return now.Status.ObservedGeneration == policy.Generation && path == converter.ConvertPath+"/"+now.Status.Converter.Revision, path
	})
}

// waitCached waits until a list from the watch cache has all objects by the rule with the
// separator.
func waitCached(ctx context.Context, t *testing.T, crontab scenarios.CronTab, count int, separator string) {
	t.Helper()
	expect.Eventually(t, "what the API server has in memory is split at "+separator, func() (bool, string) {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion(crontab.Group + "/" + crontab.Old)
		list.SetKind("CronTabList")
		err := cluster.List(ctx, list, client.InNamespace(scenarios.Namespace), &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: "0"}})
		if err != nil {
			t.Fatalf("a list failed: %v", err)
		}
		for i := range list.Items {
			host, port := i%16, 1024+i
			if got := list.Items[i].Object["hostPort"]; got != fmt.Sprintf("worker-%d.example.com%s%d", host, separator, port) {
				return false, fmt.Sprintf("%s has %s", list.Items[i].GetName(), got)
			}
		}
		return len(list.Items) == count, fmt.Sprintf("%d objects", len(list.Items))
	})
}

// storeOnly waits until converter pods mount one ruleset.
func storeOnly(ctx context.Context, t *testing.T, crontab scenarios.CronTab, hash string) {
	t.Helper()
	expect.Eventually(t, "pods mount the ruleset "+hash+", and no others", func() (bool, string) {
		rulesets := &corev1.ConfigMap{}
		expect.NoError(t, cluster.Get(ctx, client.ObjectKey{Namespace: system, Name: names.Rulesets(crontab.CRD())}, rulesets))
		keys := slices.Sorted(maps.Keys(rulesets.BinaryData))
		return slices.Equal(keys, []string{conversion.StoredName(names.Child(crontab.CRD()), hash)}), strings.Join(keys, " and ")
	})
}
