// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// policyWith is a policy that a test has changed.
func policyWith(change func(*v1alpha1.ConversionPolicy)) *v1alpha1.ConversionPolicy {
	policy := &v1alpha1.ConversionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
	policy.Spec.Migration.Mode = v1alpha1.MigrationAutomatic
	change(policy)
	return policy
}

func running(policy *v1alpha1.ConversionPolicy) {
	policy.Status.Migration = &v1alpha1.MigrationStatus{Run: "r1", State: v1alpha1.MigrationRunning, Progress: "10/20"}
}

func TestDecideEdit(t *testing.T) {
	trigger := func(policy *v1alpha1.ConversionPolicy) (*edit, error) {
		return decideTrigger(policy, "now", "kubectl conversion")
	}
	suspend := func(on bool) decide {
		return func(policy *v1alpha1.ConversionPolicy) (*edit, error) {
			return decideSuspendMigration(policy, on, "kubectl conversion")
		}
	}
	pause := func(on bool) decide {
		return func(policy *v1alpha1.ConversionPolicy) (*edit, error) {
			return decidePause(policy, on, "kubectl conversion"), nil
		}
	}
	for name, test := range map[string]struct {
		decide decide
		change func(*v1alpha1.ConversionPolicy)
		want   string
	}{
		"trigger": {trigger, func(*v1alpha1.ConversionPolicy) {},
			"p: spec.migration.trigger is now\n  a migration starts\n  follow it: kubectl conversion status p --watch\n"},
		"trigger during a run": {trigger, running,
			"p: spec.migration.trigger is now\n  run r1 is running: the next one starts after it\n  follow it: kubectl conversion status p --watch\n"},
		"trigger after failures": {trigger, func(policy *v1alpha1.ConversionPolicy) {
			policy.Status.Migration = &v1alpha1.MigrationStatus{Run: "r1", State: v1alpha1.MigrationFailed, Failed: 3}
		}, "p: spec.migration.trigger is now\n  a migration starts\n  it writes only the failed objects of run r1 (3 objects), unless the CustomResourceDefinition has changed since\n  follow it: kubectl conversion status p --watch\n"},
		"trigger before the conversion": {trigger, func(policy *v1alpha1.ConversionPolicy) {
			policy.Status.Conditions = []metav1.Condition{{Type: "RulesValid", Status: "Unknown"}, {Type: "WebhookAvailable", Status: "False"}, {Type: "StorageMigrated", Status: "False"}}
		}, "p: spec.migration.trigger is now\n  it starts when WebhookAvailable is True\n  follow it: kubectl conversion status p --watch\n"},
		"trigger while migrations are suspended": {trigger, func(policy *v1alpha1.ConversionPolicy) { policy.Spec.Migration.Suspend = true },
			"p: spec.migration.trigger is now\n  migrations are suspended: it starts after kubectl conversion resume p --migration\n  follow it: kubectl conversion status p --watch\n"},
		"trigger while paused": {trigger, func(policy *v1alpha1.ConversionPolicy) { policy.Spec.Paused = true },
			"p: spec.migration.trigger is now\n  the operator is paused: the migration starts after kubectl conversion resume p\n  follow it: kubectl conversion status p --watch\n"},
		"trigger with mode Never": {trigger, func(policy *v1alpha1.ConversionPolicy) { policy.Spec.Migration.Mode = v1alpha1.MigrationNever },
			"Error: spec.migration.mode is Never: set it to Automatic or OnTrigger to allow migrations"},
		"trigger with the same text": {trigger, func(policy *v1alpha1.ConversionPolicy) { policy.Spec.Migration.Trigger = "now" },
			"Error: spec.migration.trigger is already \"now\", so nothing starts: choose another text"},
		"trigger of one that goes": {trigger, func(policy *v1alpha1.ConversionPolicy) {
			policy.DeletionTimestamp = &metav1.Time{Time: metav1.Now().Time}
		},
			"Error: the policy is being deleted: migrations neither start nor continue"},
		"suspend migrations": {suspend(true), func(*v1alpha1.ConversionPolicy) {},
			"p: spec.migration.suspend is true\n  no migration starts before kubectl conversion resume p --migration\n"},
		"suspend a run": {suspend(true), running,
			"p: spec.migration.suspend is true\n  run r1 stops at 10/20: resume it with kubectl conversion resume p --migration\n"},
		"suspend migrations twice": {suspend(true), func(policy *v1alpha1.ConversionPolicy) { policy.Spec.Migration.Suspend = true },
			"p: spec.migration.suspend was already true\n  no migration starts before kubectl conversion resume p --migration\n"},
		"resume migrations": {suspend(false), func(policy *v1alpha1.ConversionPolicy) { policy.Spec.Migration.Suspend = true; running(policy) },
			"p: spec.migration.suspend is false\n  run r1 continues from its checkpoint\n  follow it: kubectl conversion status p --watch\n"},
		"resume migrations of a paused policy": {suspend(false), func(policy *v1alpha1.ConversionPolicy) { policy.Spec.Paused = true },
			"p: spec.migration.suspend was already false\n  the operator is still paused: kubectl conversion resume p\n"},
		"pause": {pause(true), func(*v1alpha1.ConversionPolicy) {},
			"p: spec.paused is true\n  changes wait, converter pods continue to answer; resume it with kubectl conversion resume p\n"},
		"resume": {pause(false), func(policy *v1alpha1.ConversionPolicy) {
			policy.Spec.Paused = true
			policy.Spec.Migration.Suspend = true
		},
			"p: spec.paused is false\n  migrations are still suspended: kubectl conversion resume p --migration\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			if made, err := test.decide(policyWith(test.change)); err != nil {
				out.WriteString("Error: " + err.Error())
			} else if err := writeEdits(&out, []*edit{made}); err != nil {
				t.Fatal(err)
			}
			expect.Equal(t, "output", test.want, out.String())
		})
	}
}

func TestPatch(t *testing.T) {
	made := edit{Field: "spec.migration.trigger", Value: `a "text"`}
	expect.Equal(t, "patch", `{"metadata":{"resourceVersion":"7"},"spec":{"migration":{"trigger":"a \"text\""}}}`, string(made.patch("7")))
}

// TestForeignFieldManagers: a field that a GitOps tool applies is not changed.
func TestForeignFieldManagers(t *testing.T) {
	by := func(manager string, operation metav1.ManagedFieldsOperationType, fields string) metav1.ManagedFieldsEntry {
		entry := metav1.ManagedFieldsEntry{Manager: manager, Operation: operation, FieldsV1: &metav1.FieldsV1{}}
		entry.FieldsV1.SetRawBytes([]byte(fields))
		return entry
	}
	const mine, other = `{"f:spec":{"f:migration":{"f:suspend":{}}}}`, `{"f:spec":{"f:migration":{".":{},"f:mode":{}}}}`
	for name, test := range map[string]struct {
		entry metav1.ManagedFieldsEntry
		force bool
		err   string
		says  []string
	}{
		"no owner":         {by("argocd", "Apply", other), false, "", nil},
		"ourselves":        {by(fieldManager, "Apply", mine), false, "", nil},
		"kubectl edit":     {by("kubectl-edit", "Update", mine), false, "", nil},
		"kubectl apply":    {by("kubectl-client-side-apply", "Update", mine), false, "", []string{"the manifest that kubectl-client-side-apply applied has another value: change spec.migration.suspend there, too"}},
		"a GitOps tool":    {by("argocd", "Apply", mine), false, "spec.migration.suspend is applied by the field manager argocd, which may revert the change: change it there, or add --force-conflicts", nil},
		"against a tool":   {by("argocd", "Apply", mine), true, "", []string{"the manifest that argocd applied has another value: change spec.migration.suspend there, too"}},
		"unreadable":       {by("argocd", "Apply", `[]`), false, "", nil},
		"all of migration": {by("argocd", "Apply", `{"f:spec":{"f:migration":{}}}`), false, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			policy := policyWith(func(policy *v1alpha1.ConversionPolicy) {
				policy.ManagedFields = []metav1.ManagedFieldsEntry{test.entry}
			})
			made := &edit{Field: "spec.migration.suspend"}
			err := (&operateOptions{force: test.force}).mayWrite(policy, made)
			expect.Equal(t, "error", cmp.Or(test.err, "<nil>"), fmt.Sprint(err))
			expect.Equal(t, "says", test.says, made.Says)
		})
	}
}
