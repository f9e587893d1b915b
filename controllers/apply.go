// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
	"github.com/conversion-operator/conversion-operator/internal/operator/tracing"
)

// fieldOwner is the field manager of every write.
const fieldOwner = client.FieldOwner(names.ManagedBy)

// errPostponed is returned by a step that a later reconciliation has to repeat.
var errPostponed = errors.New("postponed")

// apply carries out the steps of a plan in order and stops at the first error. It returns the
// completed steps. Every step is idempotent: if the manager dies between two steps, the next one
// starts again from what it observes.
func (r *ConversionPolicyReconciler) apply(ctx context.Context, policy *v1alpha1.ConversionPolicy, decided plan.Plan) (done []step.Step, err error) {
	for _, s := range decided.Steps {
		err := tracing.Span(ctx, spanName(s), func(ctx context.Context) error {
			if drift, isDrift := s.(step.RecordDrift); isDrift {
				return r.recordDrift(ctx, policy, drift, decided.Status)
			}
			return r.do(ctx, policy, s)
		})
		switch {
		case err == nil:
			done = append(done, s)
			if _, repeats := s.(step.Apply); !repeats && !step.IsCheck(s) {
				ctrl.LoggerFrom(ctx).V(1).Info("Carried out a step", "step", step.Describe(s))
			}
		case !errors.Is(err, errPostponed):
			return done, fmt.Errorf("%s: %w", step.Describe(s), err)
		}
	}
	return done, nil
}

func (r *ConversionPolicyReconciler) do(ctx context.Context, policy *v1alpha1.ConversionPolicy, s step.Step) error {
	switch s.(type) {
	case step.Create, step.SwitchCRD, step.RestoreCRD, step.AddStorageVersion, step.PruneStoredVersions, step.EditVersions:
		if err := r.checkUnchanged(ctx, policy); err != nil {
			return err
		}
	}
	switch s := s.(type) {
	case step.AddFinalizer:
		return r.setFinalizer(ctx, policy, controllerutil.AddFinalizer)
	case step.RemoveFinalizer:
		return r.setFinalizer(ctx, policy, controllerutil.RemoveFinalizer)
	case step.Create:
		wanted, err := toUnstructured(s.Object)
		if err != nil {
			return err
		}
		return r.createOnce(ctx, wanted)
	case step.StoreRulesets:
		return r.storeRulesets(ctx, policy.Name, s)
	case step.AwaitRuleset:
		r.awaitRuleset(policy.Name, s)
		return nil
	case step.CreateFleet:
		return r.createOnce(ctx, &v1alpha1.ConverterFleet{ObjectMeta: metav1.ObjectMeta{Name: s.Name, Labels: names.FleetLabels(s.Name)}})
	case step.EvictPod:
		return r.evict(ctx, s)
	case step.SwitchCRD:
		return r.switchCRD(ctx, s)
	case step.RestoreCRD:
		return r.restoreCRD(ctx, s)
	case step.AddStorageVersion:
		return r.addStorageVersion(ctx, s)
	case step.PruneStoredVersions:
		return r.pruneStoredVersions(ctx, s)
	case step.EditVersions:
		return r.editVersions(ctx, s)
	case step.SuspendRun:
		return r.suspendRun(ctx, s)
	case step.TakeSamples, step.ProbeAPIServer, step.CountWrites, step.ReadRequests, step.FindDependents, step.ClearManagedFields:
		r.Checks.do(policy.Name, s)
		return nil
	case step.Warn:
		return nil // report.go emits the event after the status write
	case step.DeleteRun, step.DeleteJob, step.DeleteRights, step.DeleteRulesets, step.DeleteDeployment, step.DeleteService, step.DeleteSecret, step.DeleteAdmission:
		return r.delete(ctx, s)
	}
	return r.doFor(ctx, policyOwner(policy), s)
}

// doFor carries out a step that policies and fleets have in common.
func (r *ConversionPolicyReconciler) doFor(ctx context.Context, of owner, s step.Step) error {
	switch s := s.(type) {
	case step.Apply:
		return r.applyObject(ctx, s.Object)
	case step.IssueAuthority:
		return r.issueAuthority(ctx, of, s)
	case step.PromoteAuthority:
		return r.promoteAuthority(ctx, of, s)
	case step.WriteCertificate:
		return r.writeCertificate(ctx, of, s)
	case step.RefreshPod:
		return r.refreshPod(ctx, s)
	case step.DeleteChildren:
		return r.deleteChildren(ctx, s.Instance)
	}
	return fmt.Errorf("unknown step %T", s)
}

// checkUnchanged returns a conflict if the policy, its status included, changed since the
// decision. It reads live, because the cache may lag behind this manager's own writes: a policy
// whose activation is missing in a stale status would have a foreign write reverted as if this
// were the first activation, without a report. A manager that lost its lease while it was paused
// lags behind its successor. The policy alone does not show that etcd was restored: what it is
// decided on, such as the record of a migration, may be newer than etcd.
func (r *ConversionPolicyReconciler) checkUnchanged(ctx context.Context, policy *v1alpha1.ConversionPolicy) error {
	if err := r.storage.check(ctx); err != nil {
		return err
	}
	live := &v1alpha1.ConversionPolicy{}
	err := r.Live.Get(ctx, client.ObjectKeyFromObject(policy), live)
	if err == nil && (live.UID != policy.UID || live.ResourceVersion != policy.ResourceVersion) {
		err = apierrors.NewConflict(v1alpha1.GroupVersion.WithResource("conversionpolicies").GroupResource(), policy.Name,
			errors.New("the policy has changed since this was decided"))
	}
	return err
}

func (r *ConversionPolicyReconciler) setFinalizer(
	ctx context.Context, object client.Object, change func(client.Object, string) bool,
) error {
	base := object.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy is of the same type
	if !change(object, names.Finalizer) {
		return nil
	}
	patch := client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})
	return client.IgnoreNotFound(r.Client.Patch(ctx, object, patch))
}

// applyObject applies an object, and writes nothing if the cached object has the wanted state. Applying
// takes fields over from other writers, so it needs an object of the operator, or none. With the uid, the
// API server refuses the write if another object has the name by then.
func (r *ConversionPolicyReconciler) applyObject(ctx context.Context, object runtime.ApplyConfiguration) error {
	wanted, err := toUnstructured(object)
	if err != nil {
		return err
	}
	applied, uid, err := r.isApplied(ctx, wanted)
	if applied || err != nil {
		return err
	}
	if uid == "" { // the cache has only objects of the operator
		found, err := r.existing(ctx, wanted)
		if err == nil && found != nil {
			uid, err = found.UID, checkOwner(found, wanted)
		}
		if err != nil {
			return err
		}
	}
	wanted.SetUID(uid)
	ctrl.LoggerFrom(ctx).V(1).Info("Applying", "kind", wanted.GetKind(), "name", wanted.GetName())
	return r.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(wanted), fieldOwner, client.ForceOwnership)
}

// isApplied reports whether the cached object has the wanted state, and its uid, which is empty if there
// is none. It adds the content hash to wanted.
func (r *ConversionPolicyReconciler) isApplied(ctx context.Context, wanted *unstructured.Unstructured) (bool, types.UID, error) {
	hash, err := contentHash(wanted)
	if err != nil {
		return false, "", err
	}
	annotations := wanted.GetAnnotations()
	annotations[contentAnnotation] = hash
	wanted.SetAnnotations(annotations)

	current, err := r.cached(ctx, wanted.GroupVersionKind(), client.ObjectKeyFromObject(wanted))
	if current == nil || err != nil {
		return false, "", err
	}
	return contains(current, wanted.Object), (&unstructured.Unstructured{Object: current}).GetUID(), nil
}

// existing reads the metadata of the object of this kind and name from the API server; nil if there is
// none. The manager may list all kinds that it writes, and get few of them.
func (r *ConversionPolicyReconciler) existing(ctx context.Context, object client.Object) (*metav1.PartialObjectMetadata, error) {
	kind, err := r.Client.GroupVersionKindFor(object)
	if err != nil {
		return nil, err
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	err = r.Live.List(ctx, list, client.InNamespace(object.GetNamespace()), client.MatchingFields{metav1.ObjectNameField: object.GetName()})
	if err != nil || len(list.Items) == 0 {
		return nil, err
	}
	return &list.Items[0], nil
}

// checkOwner returns an error if an object does not have the labels of the operator that wanted has.
func checkOwner(existing, wanted client.Object) error {
	labels, instance := existing.GetLabels(), wanted.GetLabels()[names.InstanceLabel]
	if labels[names.ManagedByLabel] != names.ManagedBy || labels[names.InstanceLabel] != instance {
		return fmt.Errorf("%s %s exists without the labels %s=%s and %s=%s: delete it, or give it the labels",
			wanted.GetObjectKind().GroupVersionKind().Kind, client.ObjectKeyFromObject(wanted), names.ManagedByLabel, names.ManagedBy, names.InstanceLabel, instance)
	}
	return nil
}

// cached returns the content of an object in the cache, or nil if it does not exist.
func (r *ConversionPolicyReconciler) cached(
	ctx context.Context, kind schema.GroupVersionKind, key client.ObjectKey,
) (map[string]any, error) {
	typed, err := r.Client.Scheme().New(kind)
	if err != nil {
		return nil, err
	}
	object := typed.(client.Object) //nolint:forcetypeassert // every kind that we apply is a client.Object
	if err := r.Client.Get(ctx, key, object); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, err
	}
	content["apiVersion"], content["kind"] = kind.GroupVersion().String(), kind.Kind
	return content, nil
}

// createOnce creates an object, and accepts one that this manager or another created before. The
// cache holds only objects with the operator's labels, so an object of this name without them
// would seem to be missing for ever: that is an error.
func (r *ConversionPolicyReconciler) createOnce(ctx context.Context, object client.Object) error {
	kind, err := r.Client.GroupVersionKindFor(object)
	if err != nil {
		return err
	}
	wanted := object.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy is of the same type
	wanted.GetObjectKind().SetGroupVersionKind(kind)
	err = r.Client.Create(ctx, object, fieldOwner)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	found, err := r.existing(ctx, wanted)
	if err != nil || found == nil {
		return err
	}
	return checkOwner(found, wanted)
}

func (r *ConversionPolicyReconciler) suspendRun(ctx context.Context, s step.SuspendRun) error {
	patch := mergePatch(map[string]any{
		"metadata": map[string]any{"uid": s.UID}, "spec": map[string]any{"suspend": s.Suspend}})
	return client.IgnoreNotFound(r.Client.Patch(ctx, r.job(s.Name), patch, fieldOwner))
}

// contentAnnotation holds a hash of the applied content. It shows that a field is no longer wanted
// although all wanted fields still match.
const contentAnnotation = "conversion-operator.io/content"

func toUnstructured(object runtime.ApplyConfiguration) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, err
	}
	return &unstructured.Unstructured{Object: content}, nil
}

func contentHash(object *unstructured.Unstructured) (string, error) {
	text, err := json.Marshal(object.Object)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8]), nil
}

// contains reports whether current has every wanted value. It may report false where the API
// server sees no difference, for example for a quantity in another notation; applying then changes
// nothing.
func contains(current, wanted any) bool {
	switch wanted := wanted.(type) {
	case map[string]any:
		members, ok := current.(map[string]any)
		if !ok {
			return false
		}
		for key, value := range wanted {
			if !contains(members[key], value) {
				return false
			}
		}
		return true
	case []any:
		elements, ok := current.([]any)
		if !ok || len(elements) != len(wanted) {
			return false
		}
		for i := range wanted {
			if !contains(elements[i], wanted[i]) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(current, wanted)
}
