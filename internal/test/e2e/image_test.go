//go:build e2e

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/release"
	"github.com/conversion-operator/conversion-operator/internal/test/scenarios"
)

// TestConverterImage: a converter written with controller-runtime converts and migrates, in pods
// with the operator's certificates. Two bad versions, one that cannot be pulled and one for another
// group, do not replace it, and its pods can be changed while objects are read. A pod that no longer
// converts, although it is ready, is evicted.
func TestConverterImage(t *testing.T) {
	release.Only(t, "TestDecisions", "TestPodConvertsWrongly")
	ctx := t.Context()
	run(ctx, t, "kubectl", "-n", system, "patch", manager, "--type=json", "-p",
		`[{"op":"add","path":"/spec/template/spec/containers/0/args/-","value":"--proof-lifetime=3s"}]`)
	t.Cleanup(func() { reinstall(context.WithoutCancel(ctx), t) })
	waitRolledOut(ctx, t)
	crontab := inGroup(t, "image.example.com")
	applySample(ctx, t, crontab, crontab.CRDBoth)
	expect.NoError(t, cluster.Create(ctx, imagePolicy(t, crontab)))
	waitReady(ctx, t, crontab, v1alpha1.ReasonSucceeded)
	expect.NoError(t, fleet.Create(ctx, crontab.At(crontab.Old), objects, crontab.Object))
	expect.NoError(t, readAll(ctx, crontab))

	load := startLoad(ctx, t, crontab)
	changeImages(ctx, t, crontab)
	waitConverters(ctx, t, crontab)
	load.check(t)
	breakPod(ctx, t, crontab)

	applySample(ctx, t, crontab, crontab.CRDStorage)
	waitMessage(ctx, t, crontab, v1alpha1.StorageMigratedCondition, v1alpha1.ReasonMigrated, "")
	expect.NoError(t, readAll(ctx, crontab))
}

// imagePolicy returns the sample policy for the CronTab's group, with the image that was built for
// the tests.
func imagePolicy(t *testing.T, crontab scenarios.CronTab) *v1alpha1.ConversionPolicy {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(teller.Dir, "config/samples/crontab-image/policy.yaml"))
	expect.NoError(t, err)
	image := os.Getenv("E2E_CONVERTER_IMAGE")
	if image == "" {
		t.Fatal("E2E_CONVERTER_IMAGE is not set: run make test-e2e-release")
	}
	changed := strings.NewReplacer("crontabs.example.com", crontab.CRD(), "--group=example.com", "--group="+crontab.Group,
		"localhost/crontab-converter:dev", image).Replace(string(text))
	policy := &v1alpha1.ConversionPolicy{}
	expect.NoError(t, yaml.UnmarshalStrict([]byte(changed), policy))
	return policy
}

// changeImages tries two bad images, and returns to the good one with a changed pod template.
func changeImages(ctx context.Context, t *testing.T, crontab scenarios.CronTab) {
	t.Helper()
	setImage := func(fields string) {
		change(ctx, t, crontab, `{"spec":{"converter":{"image":{`+fields+`}}}}`)
	}
	setImage(`"reference":"localhost/there-is-none:1"`)
	waitMessage(ctx, t, crontab, v1alpha1.WebhookAvailableCondition, v1alpha1.ReasonRollingOut, "the image localhost/there-is-none:1 cannot be pulled")
	setImage(fmt.Sprintf(`"reference":%q,"args":["--group=another.example.com"]`, os.Getenv("E2E_CONVERTER_IMAGE")))
	waitMessage(ctx, t, crontab, v1alpha1.ConversionVerifiedCondition, "CanaryFailed", "still uses the previous image")
	setImage(fmt.Sprintf(`"args":["--group=%s"],"env":[{"name":"GOGC","value":"50"}]`, crontab.Group))
	waitReady(ctx, t, crontab, v1alpha1.ReasonSucceeded)
}

// breakPod suspends the process in one of two verified pods. The pod stays ready, because its port
// accepts connections. The next probe fails, the pod is evicted, and another one replaces it. The
// CustomResourceDefinition is not written.
func breakPod(ctx context.Context, t *testing.T, crontab scenarios.CronTab) {
	t.Helper()
	generation := getCRD(ctx, t, crontab).Generation
	victim := converters(ctx, t, crontab)[0]
	if send(ctx, t, &victim, "--group="+crontab.Group, syscall.SIGSTOP) != 0 {
		waitEvent(ctx, t, crontab, v1alpha1.ReasonPodEvicted)
	}
	waitGone(ctx, t, &victim)
	waitConverters(ctx, t, crontab)
	waitReady(ctx, t, crontab, v1alpha1.ReasonSucceeded)
	readsUntilRight(ctx, t, crontab)
	expect.Equal(t, "generation of the CustomResourceDefinition", generation, getCRD(ctx, t, crontab).Generation)
}

// TestExternalConverter: a converter that users run, in a namespace of their own, serves the
// certificate that the operator issued. The operator deploys nothing.
func TestExternalConverter(t *testing.T) {
	release.Only(t, "TestForeignService", "TestRotationOfOwnConverters")
	t.Parallel()
	ctx := t.Context()
	crontab := inGroup(t, "theirs.example.com")
	run(ctx, t, "kubectl", "create", "namespace", "theirs")
	applySample(ctx, t, crontab, crontab.CRDBoth)
	policy := &v1alpha1.ConversionPolicy{ObjectMeta: metav1.ObjectMeta{Name: crontab.CRD()}}
	policy.Spec.Converter = v1alpha1.Converter{Type: v1alpha1.ConverterService, Service: &v1alpha1.ServiceConverter{Namespace: "theirs", Name: "webhook"}}
	expect.NoError(t, cluster.Create(ctx, policy))
	issued := &corev1.Secret{}
	expect.Success(t, "the certificate is issued", func(ctx context.Context) error {
		return cluster.Get(ctx, client.ObjectKey{Namespace: system, Name: names.ExternalCertificateSecret(crontab.CRD())}, issued)
	})
	copied := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "theirs", Name: "webhook-tls"}, Type: issued.Type, Data: issued.Data}
	expect.NoError(t, cluster.Create(ctx, copied))
	file := filepath.Join(t.TempDir(), "theirs.yaml")
	expect.NoError(t, os.WriteFile(file, fmt.Appendf(nil, theirs, os.Getenv("E2E_CONVERTER_IMAGE"), crontab.Group), 0o600))
	run(ctx, t, "kubectl", "-n", "theirs", "apply", "-f", file)
	waitReady(ctx, t, crontab, v1alpha1.ReasonSucceeded)
	expect.NoError(t, fleet.Create(ctx, crontab.At(crontab.Old), objects, crontab.Object))
	expect.NoError(t, readAll(ctx, crontab))
	expect.Equal(t, "converter pods that the operator runs", 0, len(converters(ctx, t, crontab)))
}

// theirs are a Service and a pod of an image, for a group.
const theirs = `
apiVersion: v1
kind: Service
metadata: {name: webhook}
spec: {selector: {app: webhook}, ports: [{port: 443, targetPort: 9443}]}
---
apiVersion: v1
kind: Pod
metadata: {name: webhook, labels: {app: webhook}}
spec:
  containers:
  - {name: webhook, image: %q, args: [--group=%s], volumeMounts: [{name: tls, mountPath: /tmp/k8s-webhook-server/serving-certs}]}
  volumes: [{name: tls, secret: {secretName: webhook-tls}}]
`
