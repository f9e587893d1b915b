//go:build e2e

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/converter"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/workload"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/release"
	"github.com/conversion-operator/conversion-operator/internal/test/scenarios"
)

// TestConverterPods has a policy with pods of its own, while clients write at one version and read at
// both. Its rules change, its pods are replaced by others of another shape, evicted and killed, and its
// authority is replaced. No conversion fails, and no answer is wrong. At last a pod hangs.
func TestConverterPods(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	crontab := converting(ctx, t, "pods.example.com", storesNew)
	waitConverters(ctx, t, crontab)
	checkNoAccess(ctx, t, crontab)
	draftFromWebhook(ctx, t, crontab)

	load := startLoad(ctx, t, crontab)
	changeRules(ctx, t, crontab)
	reshape(ctx, t, crontab)
	drain(ctx, t, crontab)
	rotate(ctx, t, crontab)
	load.checkAll(t)

	load = startLoad(ctx, t, crontab)
	kill(ctx, t, converters(ctx, t, crontab)[:1])
	waitConverters(ctx, t, crontab)
	load.check(t)

	hang(ctx, t, crontab)
}

// checkNoAccess: all objects pass through converter pods, which therefore have no access to the API.
func checkNoAccess(ctx context.Context, t *testing.T, crontab scenarios.CronTab) {
	t.Helper()
	for _, pod := range converters(ctx, t, crontab) {
		for _, volume := range pod.Spec.Volumes {
			if volume.Projected != nil && slices.ContainsFunc(volume.Projected.Sources, func(source corev1.VolumeProjection) bool { return source.ServiceAccountToken != nil }) {
				t.Errorf("pod %s mounts a ServiceAccount token", pod.Name)
			}
		}
		expect.Equal(t, "ServiceAccount of pod "+pod.Name, "conversion-operator-converter", pod.Spec.ServiceAccountName)
	}
	for _, verb := range []string{"get", "list", "create"} {
		answer, err := teller.Run(ctx, "kubectl", "auth", "can-i", verb, "secrets", "-n", system,
			"--as=system:serviceaccount:"+system+":conversion-operator-converter")
		if err == nil {
			t.Errorf("converter pods can %s secrets: %s", verb, answer)
		}
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

// changeRules changes the rules and reverts them while a client reads. Each result is by the old or the
// new rules, and never by the old ones after the new ones. The watch cache of the API server follows, and
// so do the pods, which stay.
func changeRules(ctx context.Context, t *testing.T, crontab scenarios.CronTab) {
	t.Helper()
	var answers []string
	reader := fleet.Read(ctx, crontab.At(crontab.Old), crontab.Object(7).GetName(), func(object *unstructuredObject) error {
		answer := fmt.Sprint(object.Object["hostPort"])
		if len(answers) == 0 || answers[len(answers)-1] != answer {
			answers = append(answers, answer)
		}
		return nil
	})
	waitCached(ctx, t, crontab, ":")
	first, before := getPolicy(ctx, t, crontab).Status.Revision, uids(converters(ctx, t, crontab))
	for _, separator := range []string{"|", ":"} {
		splitAt(ctx, t, crontab, separator)
		waitCached(ctx, t, crontab, separator)
	}
	waitStored(ctx, t, crontab, first)
	expect.Equal(t, "pods, none of which is to be replaced,", before, uids(converters(ctx, t, crontab)))
	expect.NoError(t, reader.Check())
	expect.Equal(t, "answers in turn", []string{"worker-7.example.com:1031", "worker-7.example.com|1031", "worker-7.example.com:1031"}, answers)
}

// splitAt changes the separator in the policy's rule, and waits until the CRD converts by it.
func splitAt(ctx context.Context, t *testing.T, crontab scenarios.CronTab, separator string) {
	t.Helper()
	policy := getPolicy(ctx, t, crontab)
	base := policy.DeepCopy()
	policy.Spec.Converter.Declarative.Spokes[0].Rules[0].Format.Template = "{host}" + separator + "{port}"
	expect.NoError(t, cluster.Patch(ctx, policy, client.MergeFrom(base)))
	expect.Eventually(t, "the CustomResourceDefinition converts by the changed rules", func() (bool, string) {
		now := getPolicy(ctx, t, crontab)
		path := *getCRD(ctx, t, crontab).Spec.Conversion.Webhook.ClientConfig.Service.Path
		return now.Status.ObservedGeneration == policy.Generation && path == converter.ConvertPath+"/"+now.Status.Revision, path
	})
}

// waitCached waits until a list from the watch cache has all objects by the rule with the separator.
func waitCached(ctx context.Context, t *testing.T, crontab scenarios.CronTab, separator string) {
	t.Helper()
	expect.Eventually(t, "what the API server has in memory is split at "+separator, func() (bool, string) {
		items, err := fleet.ListCached(ctx, crontab.At(crontab.Old))
		if err != nil {
			t.Fatalf("a list failed: %v", err)
		}
		for i := range items {
			want := strings.Replace(fmt.Sprint(crontab.Object(i).Object["hostPort"]), ":", separator, 1)
			if got := items[i].Object["hostPort"]; got != want {
				return false, fmt.Sprintf("%s has %s", items[i].GetName(), got)
			}
		}
		return len(items) == objects, fmt.Sprintf("%d objects", len(items))
	})
}

// waitStored waits until converter pods mount one ruleset.
func waitStored(ctx context.Context, t *testing.T, crontab scenarios.CronTab, hash string) {
	t.Helper()
	expect.Eventually(t, "pods mount the ruleset "+hash+", and no others", func() (bool, string) {
		keys := slices.Sorted(maps.Keys(get(ctx, t, names.Rulesets(crontab.CRD()), &corev1.ConfigMap{}).BinaryData))
		return slices.Equal(keys, []string{conversion.StoredName(names.Child(crontab.CRD()), hash)}), strings.Join(keys, " and ")
	})
}

// reshape changes the template of the pods: another port, a priority, and a patch.
func reshape(ctx context.Context, t *testing.T, crontab scenarios.CronTab) {
	t.Helper()
	change(ctx, t, crontab, `{"spec":{"workload":{"type":"Dedicated","dedicated":{"port":10260,"priorityClassName":"system-cluster-critical","patches":[
		{"target":{"kind":"Deployment"},"patch":"[{\"op\": \"add\", \"path\": \"/spec/template/metadata/labels/team\", \"value\": \"data\"}]"}]}}}}`)
	expect.Eventually(t, "all pods are of the new shape", func() (bool, string) {
		found := converters(ctx, t, crontab)
		for _, pod := range found {
			if pod.Labels["team"] != "data" || workload.PortOf(&pod.Spec) != 10260 || pod.Spec.PriorityClassName != "system-cluster-critical" {
				return false, pod.Name + " is of the old shape"
			}
		}
		return len(found) == 2, fmt.Sprintf("%d pods", len(found))
	})
	waitConverters(ctx, t, crontab)
	waitReady(ctx, t, crontab, v1alpha1.ReasonSucceeded)
	expect.Eventually(t, "both pods are counted", func() (bool, string) {
		counted := getPolicy(ctx, t, crontab).Status.Webhook
		return counted.Ready == 2 && counted.Desired == 2, fmt.Sprintf("%+v", counted)
	})
}

// drain cordons all nodes and evicts the converter pods, like kubectl drain: the second pod can be
// evicted only after the first one is replaced.
func drain(ctx context.Context, t *testing.T, crontab scenarios.CronTab) {
	t.Helper()
	all := converters(ctx, t, crontab)
	cordon(ctx, t, true)
	defer cordon(ctx, t, false)
	expect.NoError(t, evict(ctx, &all[0]))
	expect.Eventually(t, "the evicted pod is gone, and the other one stays", func() (bool, string) {
		if err := evict(ctx, &all[1]); !apierrors.IsTooManyRequests(err) {
			t.Fatalf("the last converter pod may be evicted: %v", err)
		}
		err := cluster.Get(ctx, client.ObjectKeyFromObject(&all[0]), &corev1.Pod{})
		return apierrors.IsNotFound(err), fmt.Sprint(err)
	})
	cordon(ctx, t, false)
	waitConverters(ctx, t, crontab)
	expect.Success(t, "the other one may go too", func(ctx context.Context) error { return evict(ctx, &all[1]) })
	waitConverters(ctx, t, crontab)
}

func cordon(ctx context.Context, t *testing.T, unschedulable bool) {
	t.Helper()
	nodes := &corev1.NodeList{}
	expect.NoError(t, cluster.List(ctx, nodes))
	patch := fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, unschedulable)
	for i := range nodes.Items {
		expect.NoError(t, cluster.Patch(ctx, &nodes.Items[i], client.RawPatch(types.MergePatchType, patch)))
	}
}

// rotate replaces the authority with the documented commands, and waits until only the new one is in
// use. The CustomResourceDefinition is written twice.
func rotate(ctx context.Context, t *testing.T, crontab scenarios.CronTab) {
	t.Helper()
	generation, authority := getCRD(ctx, t, crontab).Generation, caBundle(ctx, t, crontab)
	player := newPlayer(t, t.TempDir())
	player.Names = strings.NewReplacer("crontabs.example.com", crontab.CRD())
	play(t, player, "replacing")
	expect.Eventually(t, "another authority is the only one in use", func() (bool, string) {
		is, now := getPolicy(ctx, t, crontab).Status.Certificate, caBundle(ctx, t, crontab)
		return is.Rotation == v1alpha1.RotationIdle && !bytes.Equal(now, authority) && bytes.Count(now, []byte("BEGIN")) == 1, string(is.Rotation)
	})
	expect.Equal(t, "writes of the CustomResourceDefinition for one authority", 2, getCRD(ctx, t, crontab).Generation-generation)
}

func caBundle(ctx context.Context, t *testing.T, crontab scenarios.CronTab) []byte {
	t.Helper()
	return getCRD(ctx, t, crontab).Spec.Conversion.Webhook.ClientConfig.CABundle
}

// hang suspends the process of one of two pods. A request that it has accepted ends with the API
// server's timeout. The other pod answers all requests once the suspended one is not ready any more.
func hang(ctx context.Context, t *testing.T, crontab scenarios.CronTab) {
	t.Helper()
	victim := converters(ctx, t, crontab)[0]
	process := send(ctx, t, &victim, "--rulesets=/etc/conversion-operator/rulesets", syscall.SIGSTOP)
	if process != 0 {
		t.Cleanup(func() { _ = syscall.Kill(process, syscall.SIGCONT) })
	}
	expect.Eventually(t, "the pod is not ready", func() (bool, string) {
		return !slices.ContainsFunc(converters(ctx, t, crontab), func(pod corev1.Pod) bool { return pod.UID == victim.UID && serves(&pod) }), "it is"
	})
	t.Logf("%d reads failed before others did not", readsUntilRight(ctx, t, crontab))
	if process == 0 {
		return
	}
	expect.Equal(t, "pods that are ready by status.webhook", 1, getPolicy(ctx, t, crontab).Status.Webhook.Ready)
	expect.NoError(t, syscall.Kill(process, syscall.SIGCONT))
	waitConverters(ctx, t, crontab)
}

// TestHostNetwork runs converter pods on the host network. The policy reports that the namespace rejects
// them, with the command that admits them.
func TestHostNetwork(t *testing.T) {
	release.Only(t, "TestPodSecurityIsRecognized", "TestTrouble", "TestShapes")
	ctx := t.Context()
	crontab := inGroup(t, "hostnetwork.example.com")
	applySample(ctx, t, crontab, crontab.Policy)
	change(ctx, t, crontab, `{"spec":{"workload":{"dedicated":{"hostNetwork":true,"port":10270,"replicas":1}}}}`)
	applySample(ctx, t, crontab, crontab.CRDBoth)
	const admit = "kubectl label namespace conversion-system --overwrite pod-security.kubernetes.io/enforce="
	waitMessage(ctx, t, crontab, v1alpha1.WebhookAvailableCondition, v1alpha1.ReasonRollingOut, admit+"privileged")

	run(ctx, t, strings.Fields(admit+"privileged")...)
	t.Cleanup(func() { run(context.WithoutCancel(ctx), t, strings.Fields(admit+"restricted")...) })
	waitReady(ctx, t, crontab, v1alpha1.ReasonSucceeded)
	expect.NoError(t, fleet.Create(ctx, crontab.At(crontab.Old), 1, crontab.Object))
	for _, pod := range converters(ctx, t, crontab) {
		if !pod.Spec.HostNetwork || pod.Status.PodIP != pod.Status.HostIP {
			t.Errorf("the pod is at %s, its node at %s", pod.Status.PodIP, pod.Status.HostIP)
		}
	}
	readsUntilRight(ctx, t, crontab)
}
