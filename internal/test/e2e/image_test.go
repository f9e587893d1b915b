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
	"testing"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/release"
	"github.com/conversion-operator/conversion-operator/internal/test/scenarios"
)

// imagePolicy returns the sample policy for the CronTab's group, with the image that was built for
// the tests.
func imagePolicy(t *testing.T, crontab scenarios.CronTab) *v1alpha1.ConversionPolicy {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(teller.Dir, "config/samples/crontab-image/policy.yaml"))
	expect.NoError(t, err)
	image := os.Getenv("E2E_CONVERTER_IMAGE")
	if image == "" {
		t.Fatal("E2E_CONVERTER_IMAGE is not set: run make test-e2e")
	}
	changed := strings.NewReplacer("crontabs.example.com", crontab.CRD(), "--group=example.com", "--group="+crontab.Group,
		"localhost/crontab-converter:dev", image).Replace(string(text))
	policy := &v1alpha1.ConversionPolicy{}
	expect.NoError(t, yaml.UnmarshalStrict([]byte(changed), policy))
	return policy
}

// TestConverterImage: a converter written with controller-runtime converts and migrates, in pods
// with the operator's certificates. Two bad versions, one that cannot be pulled and one for another
// group, do not replace it, and its pods can be changed while objects are read.
func TestConverterImage(t *testing.T) {
	release.Only(t, "TestRotationOfOwnConverters", "TestOwnConverterStories")
	t.Parallel()
	ctx := t.Context()
	crontab := inGroup(t, "image.example.com")
	applySample(ctx, t, crontab, crontab.CRDBoth)
	policy := imagePolicy(t, crontab)
	expect.NoError(t, cluster.Create(ctx, policy))
	waitReady(ctx, t, crontab.CRD(), v1alpha1.ReasonSucceeded)
	expect.NoError(t, fleet.Create(ctx, crontab.At(crontab.Old), 20, crontab.Object))
	checkConverted(ctx, t, crontab, 20)

	reader := fleet.Read(ctx, crontab.At(crontab.New), "job-0001", func(object *unstructuredObject) error {
		if host, _, _ := unstructured.NestedString(object.Object, "host"); host != "worker-1.example.com" {
			return fmt.Errorf("host is %q", host)
		}
		return nil
	})
	changeImages(ctx, t, crontab)
	if reads, err := reader.Stop(); err != nil {
		t.Errorf("after %d reads: %v", reads, err)
	}
	expect.Eventually(t, "only the pods of the last image are left", func() (bool, string) {
		left := pods(ctx, t, client.MatchingLabels{names.ComponentLabel: names.ConverterComponent, names.InstanceLabel: names.Child(crontab.CRD())})
		return len(left) == 2, fmt.Sprintf("%d pods", len(left))
	})

	applySample(ctx, t, crontab, crontab.CRDStorage)
	expect.Eventually(t, "everything is migrated", func() (bool, string) {
		migrated := apimeta.FindStatusCondition(getPolicy(ctx, t, crontab.CRD()).Status.Conditions, v1alpha1.StorageMigratedCondition)
		return migrated != nil && migrated.Reason == v1alpha1.ReasonMigrated, migrated.String()
	})
	checkConverted(ctx, t, crontab, 20)
}

// changeImages tries two bad images, and returns to the good one with a changed pod template.
func changeImages(ctx context.Context, t *testing.T, crontab scenarios.CronTab) {
	t.Helper()
	setImage(ctx, t, crontab, "localhost/there-is-none:1")
	waitMessage(ctx, t, crontab.CRD(), v1alpha1.WebhookAvailableCondition, v1alpha1.ReasonRollingOut, "the image localhost/there-is-none:1 cannot be pulled")

	setImage(ctx, t, crontab, os.Getenv("E2E_CONVERTER_IMAGE"))
	change(ctx, t, crontab, `{"spec":{"converter":{"image":{"args":["--group=another.example.com"]}}}}`)
	waitMessage(ctx, t, crontab.CRD(), v1alpha1.ConversionVerifiedCondition, "CanaryFailed", "still uses the previous image")

	change(ctx, t, crontab, `{"spec":{"converter":{"image":{"args":["--group=`+crontab.Group+`"],"env":[{"name":"GOGC","value":"50"}]}}}}`)
	waitReady(ctx, t, crontab.CRD(), v1alpha1.ReasonSucceeded)
}

// checkConverted reads all objects in the new version.
func checkConverted(ctx context.Context, t *testing.T, crontab scenarios.CronTab, want int) {
	t.Helper()
	items, err := fleet.List(ctx, crontab.At(crontab.New))
	if err != nil || len(items) != want {
		t.Fatalf("%d objects are readable, want %d: %v", len(items), want, err)
	}
	for i := range items {
		host, _, _ := unstructured.NestedString(items[i].Object, "host")
		port, _, _ := unstructured.NestedString(items[i].Object, "port")
		if !strings.HasPrefix(host, "worker-") || port == "" {
			t.Errorf("%s has host %q and port %q", items[i].GetName(), host, port)
		}
	}
}

func setImage(ctx context.Context, t *testing.T, crontab scenarios.CronTab, image string) {
	t.Helper()
	change(ctx, t, crontab, fmt.Sprintf(`{"spec":{"converter":{"image":{"reference":%q}}}}`, image))
}

func change(ctx context.Context, t *testing.T, crontab scenarios.CronTab, patch string) {
	t.Helper()
	policy := getPolicy(ctx, t, crontab.CRD())
	expect.NoError(t, cluster.Patch(ctx, policy, client.RawPatch(types.MergePatchType, []byte(patch))))
}

// waitMessage waits until a condition has a reason, and a text in its message.
func waitMessage(ctx context.Context, t *testing.T, name, condition, reason, text string) {
	t.Helper()
	expect.Eventually(t, condition+" is "+reason, func() (bool, string) {
		found := apimeta.FindStatusCondition(getPolicy(ctx, t, name).Status.Conditions, condition)
		if found == nil {
			return false, "no condition"
		}
		return found.Reason == reason && strings.Contains(found.Message, text), found.Reason + ": " + found.Message
	})
}
