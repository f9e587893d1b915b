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

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/incompressible"
	"github.com/conversion-operator/conversion-operator/internal/test/release"
	"github.com/conversion-operator/conversion-operator/internal/test/scenarios"
)

// TestMistakes: mistakes with a policy in use must not lose an object.
func TestMistakes(t *testing.T) {
	release.Only(t, "TestGates", "TestDrift", "TestGuard")
	t.Parallel()
	ctx := t.Context()
	crontab := inGroup(t, "mistakes.example.com")
	applySample(ctx, t, crontab, crontab.CRDBoth)
	run(ctx, t, "kubectl", "apply", "-f", policyWithDrop(t, crontab))
	waitReady(ctx, t, crontab.CRD(), v1alpha1.ReasonSucceeded)
	expect.NoError(t, fleet.Create(ctx, crontab.At(crontab.Old), 10, crontab.Object))

	t.Run("an edit that breaks the rules", func(t *testing.T) { breakRules(t.Context(), t, crontab) })
	t.Run("a replace that drops the conversion", func(t *testing.T) { dropConversion(t.Context(), t, crontab) })
	t.Run("what runbooks say of that", func(t *testing.T) { readRunbooks(t.Context(), t, crontab) })
}

// policyWithDrop returns a file with a policy that drops values that do not fit into annotations.
func policyWithDrop(t *testing.T, crontab scenarios.CronTab) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), crontab.Policy)
	text := strings.Replace(readSample(t, crontab, crontab.Policy), "hub: v1\n", "hub: v1\n      overflow: Drop\n", 1)
	expect.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

// readRunbooks runs the runbooks for drift, and for an object with a dropped note.
func readRunbooks(ctx context.Context, t *testing.T, crontab scenarios.CronTab) {
	large := crontab.Object(11)
	large.Object["note"] = incompressible.Text(300 << 10)
	expect.NoError(t, cluster.Create(ctx, large))
	play(t, newPlayer(t, t.TempDir(), "POLICY="+crontab.CRD()), "mistakes")
}

// breakRules: the converter still uses the previous ruleset.
func breakRules(ctx context.Context, t *testing.T, crontab scenarios.CronTab) {
	setFrom := func(path v1alpha1.Path) {
		policy := getPolicy(ctx, t, crontab.CRD())
		base := policy.DeepCopy()
		policy.Spec.Converter.Declarative.Spokes[0].Rules[0].Format.From = path
		expect.NoError(t, cluster.Patch(ctx, policy, client.MergeFrom(base)))
	}
	setFrom(".hostAndPort")
	expect.Eventually(t, "the mistake is reported", func() (bool, string) {
		valid := apimeta.FindStatusCondition(getPolicy(ctx, t, crontab.CRD()).Status.Conditions, v1alpha1.RulesValidCondition)
		return valid.Reason == v1alpha1.ReasonInvalidRules, valid.Message
	})
	checkBothVersions(ctx, t, crontab)
	setFrom(".hostPort")
	waitReady(ctx, t, crontab.CRD(), v1alpha1.ReasonSucceeded)
}

// dropConversion overwrites the CRD like kubectl replace. The guard refuses that; without it, the
// operator reverts the write.
func dropConversion(ctx context.Context, t *testing.T, crontab scenarios.CronTab) {
	drop := func() error {
		return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			crd := getCRD(ctx, t, crontab.CRD())
			crd.Spec.Conversion = nil
			return cluster.Update(ctx, crd)
		})
	}
	if err := drop(); !apierrors.IsForbidden(err) {
		t.Errorf("the guard does not refuse the write: %v", err)
	}
	run(ctx, t, "kubectl", "delete", "validatingadmissionpolicybinding", "conversion-guard.conversion-operator.io")
	expect.Eventually(t, "the write is accepted", func() (bool, string) {
		err := drop()
		return err == nil, fmt.Sprint(err)
	})
	run(ctx, t, "kubectl", "apply", "-k", "config/guard")
	expect.Eventually(t, "the conversion is back", func() (bool, string) {
		strategy := getCRD(ctx, t, crontab.CRD()).Spec.Conversion.Strategy
		return strategy == apiextensionsv1.WebhookConverter, string(strategy)
	})
	expect.Eventually(t, "objects convert again", func() (bool, string) {
		err := bothVersions(ctx, crontab)
		return err == nil, fmt.Sprint(err)
	})
}

func checkBothVersions(ctx context.Context, t *testing.T, crontab scenarios.CronTab) {
	t.Helper()
	if err := bothVersions(ctx, crontab); err != nil {
		t.Error(err)
	}
}

// bothVersions reads all objects at both versions and compares them.
func bothVersions(ctx context.Context, crontab scenarios.CronTab) error {
	for i := range 10 {
		want := crontab.Object(i)
		before, err := fleet.Get(ctx, crontab.At(crontab.Old), want.GetName())
		if err != nil {
			return err
		}
		after, err := fleet.Get(ctx, crontab.At(crontab.New), want.GetName())
		if err != nil {
			return err
		}
		joined := fmt.Sprintf("%v:%v", after.Object["host"], after.Object["port"])
		if before.Object["hostPort"] != want.Object["hostPort"] || joined != want.Object["hostPort"] {
			return fmt.Errorf("%s is %v at %s and %s at %s, want %v", want.GetName(),
				before.Object["hostPort"], crontab.Old, joined, crontab.New, want.Object["hostPort"])
		}
	}
	return nil
}
