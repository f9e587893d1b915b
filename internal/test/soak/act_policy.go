// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/crds"
)

// Actions of users of policies.

//go:embed manifests/policy.yaml
var policyManifest []byte

// applyPolicy applies the initial policy.
func (p *player) applyPolicy(ctx context.Context, s step) error {
	policy := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(policyManifest, &policy.Object); err != nil {
		return err
	}
	policy.SetName(crdOf(s.Subject))
	spec := at(s.subject().Fleet)
	for _, field := range sortedKeys(spec) {
		if spec[field] == nil {
			continue
		}
		if err := unstructured.SetNestedField(policy.Object, spec[field], "spec", field); err != nil {
			return err
		}
	}
	return p.eventually(ctx, "the policy is applied", func(ctx context.Context) error {
		return p.cluster.Apply(ctx, client.ApplyConfigurationFromUnstructured(policy.DeepCopy()), client.FieldOwner("user"), client.ForceOwnership)
	})
}

// at returns the fields of a policy's spec that select its converter pods: a fleet, or pods of its
// own.
func at(fleet string) map[string]any {
	if fleet == "" {
		return map[string]any{"workload": map[string]any{}, "converterFleetName": nil}
	}
	return map[string]any{"workload": nil, "certificates": nil, "converterFleetName": fleet}
}

// movePolicy moves a policy to the place of the model.
func (p *player) movePolicy(ctx context.Context, s step) error {
	return p.patchPolicy(ctx, s, at(s.subject().Fleet))
}

// policyChange is a change of a policy's spec by a user.
type policyChange struct {
	name string
	spec map[string]any
	// ownPods is set if the field is of pods that no other policy uses.
	ownPods bool
}

var changes = []policyChange{
	{"so that migrations verify everything", inMigration("verify", "Full"), false},
	{"so that migrations verify nothing", inMigration("verify", "None"), false},
	{"so that migrations write slowly", inMigration("maxWritesPerSecond", 10), false},
	{"so that migrations write as fast as they can", inMigration("maxWritesPerSecond", nil), false},
	{"so that it has one converter pod", inWorkload("replicas", 1), true},
	{"so that it has three converter pods", inWorkload("replicas", 3), true},
	{"so that values are dropped that do not fit", inRules("overflow", "Drop"), false},
	{"so that objects are refused that do not fit", inRules("overflow", "Fail"), false},
	{"so that certificates are renewed often", inCertificates("duration", "1h0m0s"), true},
	{"so that certificates are renewed seldom", inCertificates("duration", nil), true},
}

func inMigration(field string, value any) map[string]any {
	return map[string]any{"migration": map[string]any{field: value}}
}

func inWorkload(field string, value any) map[string]any {
	return map[string]any{"workload": map[string]any{field: value}}
}

func inRules(field string, value any) map[string]any {
	return map[string]any{"converter": map[string]any{"declarative": map[string]any{field: value}}}
}

func inCertificates(field string, value any) map[string]any {
	return map[string]any{"certificates": map[string]any{"selfManaged": map[string]any{field: value}}}
}

// changeNames returns the possible changes of a policy, with pods of its own or in a fleet.
func changeNames(ownPods bool) []string {
	var names []string
	for _, change := range changes {
		if ownPods || !change.ownPods {
			names = append(names, change.name)
		}
	}
	return names
}

func (p *player) changePolicy(ctx context.Context, s step) error {
	for _, change := range changes {
		if change.name == s.Detail {
			return p.patchPolicy(ctx, s, change.spec)
		}
	}
	return nil
}

func (p *player) rotateAuthority(ctx context.Context, s step) error {
	return p.patchPolicy(ctx, s, inCertificates("rotationTrigger", s.Text))
}

func (p *player) triggerMigration(ctx context.Context, s step) error {
	return p.patchPolicy(ctx, s, inMigration("trigger", s.Text))
}

// suspendMigrations suspends or resumes migrations, as the model says.
func (p *player) suspendMigrations(ctx context.Context, s step) error {
	return p.patchPolicy(ctx, s, inMigration("suspend", s.subject().MigrationsSuspended))
}

// suspendPolicy suspends or resumes the policy, as the model says.
func (p *player) suspendPolicy(ctx context.Context, s step) error {
	return p.patchPolicy(ctx, s, map[string]any{"suspend": s.subject().Suspended})
}

// wantVersions sets the storage version and the retirements of the policy to those of the model,
// without a soak time between the actions of a retirement.
func (p *player) wantVersions(ctx context.Context, s step) error {
	return p.patchPolicy(ctx, s, wantedVersions(s.subject()))
}

// retireVersion sets the retirement action of a version. Before a removal, it runs a migration that
// counts preserved data, as the documentation advises, so that the status reports potential losses
// while the version is still served. It waits for the removal, so that the ledger changes at the
// right time.
func (p *player) retireVersion(ctx context.Context, s step) error {
	version, action, _ := readRetirement(s.Detail)
	if action != v1alpha1.RetirementRemove {
		return p.wantVersions(ctx, s)
	}
	if err := p.triggerMigration(ctx, s); err != nil {
		return err
	}
	err := p.eventually(ctx, "the migration has counted what objects hold", func(ctx context.Context) error {
		policy := &v1alpha1.ConversionPolicy{}
		if err := p.cluster.Get(ctx, client.ObjectKey{Name: crdOf(s.Subject)}, policy); err != nil {
			return err
		}
		if run := policy.Status.Migration; run == nil || run.Trigger != s.Text || run.State != v1alpha1.MigrationSucceeded {
			return fmt.Errorf("the last migration is %+v", run)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := p.wantVersions(ctx, s); err != nil {
		return err
	}
	if _, blocker := s.blockedRemoval(); blocker != "" {
		return nil
	}
	return p.eventually(ctx, version+" is removed", func(ctx context.Context) error {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := p.cluster.Get(ctx, client.ObjectKey{Name: crdOf(s.Subject)}, crd); err != nil {
			return err
		}
		if has, _ := crds.Version(crd, version); has != nil {
			return errors.New("the definition has it")
		}
		return nil
	})
}

// noteDiscarded removes the accepted losses of a removed version from the ledger.
func (p *player) noteDiscarded(s step) {
	if s.Kind != retirement {
		return
	}
	if version, blocker := s.blockedRemoval(); blocker == "" && !slices.Contains(s.subject().Versions, version) {
		p.ledger.discard(s.Subject, version, s.subject().Accepts[version])
	}
}

// wantedVersions returns the fields of a policy's spec that name versions.
func wantedVersions(is subject) map[string]any {
	spec := map[string]any{"storageVersion": nil, "retirement": nil}
	if is.Wanted != "" {
		spec["storageVersion"] = is.Wanted
	}
	var entries []any
	for _, version := range sortedKeys(is.Retires) {
		entry := map[string]any{"version": version, "action": string(is.Retires[version]), "after": "0s"}
		if accepted := is.Accepts[version]; len(accepted) > 0 {
			entry["acceptedLosses"] = list(accepted)
		}
		entries = append(entries, entry)
	}
	if len(entries) > 0 {
		spec["retirement"] = entries
	}
	return spec
}

// abandonPolicy deletes the policy, and keeps its converter running.
func (p *player) abandonPolicy(ctx context.Context, s step) error {
	if err := p.patchPolicy(ctx, s, map[string]any{"deletionPolicy": string(v1alpha1.DeletionAbandon)}); err != nil {
		return err
	}
	return p.deleteWhole(ctx, &v1alpha1.ConversionPolicy{ObjectMeta: metav1.ObjectMeta{Name: crdOf(s.Subject)}})
}

// patchPolicy changes fields of the policy's spec.
func (p *player) patchPolicy(ctx context.Context, s step, spec map[string]any) error {
	return p.patchSpec(ctx, &v1alpha1.ConversionPolicy{ObjectMeta: metav1.ObjectMeta{Name: crdOf(s.Subject)}}, spec)
}

func mergePatch(spec map[string]any) ([]byte, error) {
	return json.Marshal(map[string]any{"spec": spec})
}

// pruning records what another client removed from status.storedVersions: the versions, and the
// etcd revision of that change.
type pruning struct {
	Revision int64
	Versions []string
}

// left reports whether an object was stored at a version when that version was pruned.
func (p pruning) left(version string, written int64) bool {
	return slices.Contains(p.Versions, version) && written < p.Revision
}

// pruneStoredVersions removes every version but the storage version from status.storedVersions
// without rewriting objects, as some instructions advise.
func (p *player) pruneStoredVersions(ctx context.Context, s step) error {
	done := pruning{}
	err := p.eventually(ctx, "status.storedVersions is pruned", func(ctx context.Context) error {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := p.cluster.Get(ctx, client.ObjectKey{Name: crdOf(s.Subject)}, crd); err != nil {
			return err
		}
		storage, before := crds.StorageVersion(crd), crd.DeepCopy()
		if gone := without(crd.Status.StoredVersions, storage); len(gone) > 0 {
			done.Versions, crd.Status.StoredVersions = gone, []string{storage}
			patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
			if err := p.cluster.Status().Patch(ctx, crd, patch, client.FieldOwner("kubectl-edit")); err != nil {
				if apierrors.IsConflict(err) {
					done.Versions = nil // another writer changed it: this try pruned nothing
				}
				return err
			}
		}
		var err error
		done.Revision, err = strconv.ParseInt(crd.ResourceVersion, 10, 64)
		return err
	})
	if len(done.Versions) > 0 {
		fmt.Fprintf(p.out, "     %v are listed no more\n", done.Versions)
		done.Versions = append(done.Versions, p.pruned[s.Subject].Versions...)
		p.pruned[s.Subject] = done
	}
	return err
}

// forgetPruned deletes the record of prunings once all stored versions are listed again.
func (p *player) forgetPruned(all map[string]observation) {
	for name, now := range all {
		if len(now.unlisted()) == 0 {
			delete(p.pruned, name)
		}
	}
}
