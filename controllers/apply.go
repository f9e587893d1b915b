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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/plan"
	"github.com/conversion-operator/conversion-operator/internal/tracing"
)

// fieldOwner of every server-side apply.
const fieldOwner = client.FieldOwner(plan.ManagedBy)

// errNotNow is returned by a step that is left to a later reconciliation.
var errNotNow = errors.New("not now")

// apply does the steps of a plan in order and stops at the first error. It returns those
// that are done. Every step can be done twice: a manager that dies between two of them
// starts again from what it observes.
func (r *ConversionPolicyReconciler) apply(ctx context.Context, policy *v1alpha1.ConversionPolicy, decided plan.Plan) (done []plan.Step, err error) {
	for _, step := range decided.Steps {
		err := tracing.Span(ctx, spanOf(step), func(ctx context.Context) error {
			if drift, isDrift := step.(plan.RecordDrift); isDrift {
				return r.recordDrift(ctx, policy, drift, decided.Status)
			}
			return r.do(ctx, policy, step)
		})
		switch {
		case err == nil:
			done = append(done, step)
		case !errors.Is(err, errNotNow):
			return done, fmt.Errorf("%s: %w", describe(step), err)
		}
	}
	return done, nil
}

func (r *ConversionPolicyReconciler) do(ctx context.Context, policy *v1alpha1.ConversionPolicy, step plan.Step) error {
	switch step.(type) {
	case plan.Create, plan.SwitchCRD, plan.RestoreCRD, plan.PruneStoredVersions, plan.EditVersions:
		if err := r.unchanged(ctx, policy); err != nil {
			return err
		}
	}
	switch step := step.(type) {
	case plan.AddFinalizer:
		return r.setFinalizer(ctx, policy, controllerutil.AddFinalizer)
	case plan.RemoveFinalizer:
		return r.setFinalizer(ctx, policy, controllerutil.RemoveFinalizer)
	case plan.Apply:
		return r.applyObject(ctx, step.Object)
	case plan.Create:
		return r.createObject(ctx, step.Object)
	case plan.IssueAuthority:
		return r.issueAuthority(ctx, policy, step)
	case plan.PromoteAuthority:
		return r.promoteAuthority(ctx, policy, step)
	case plan.WriteCertificate:
		return r.writeCertificate(ctx, policy, step)
	case plan.RefreshPod:
		return r.refreshPod(ctx, step)
	case plan.EvictPod:
		return r.evict(ctx, step)
	case plan.SwitchCRD:
		return r.switchCRD(ctx, step)
	case plan.RestoreCRD:
		return r.restoreCRD(ctx, step)
	case plan.PruneStoredVersions:
		return r.pruneStoredVersions(ctx, step)
	case plan.EditVersions:
		return r.editVersions(ctx, step)
	case plan.SuspendRun:
		return r.suspendRun(ctx, step)
	case plan.TakeSamples, plan.ProbeAPIServer, plan.CountWrites, plan.ReadRequests, plan.ClearManagedFields:
		r.Checks.do(policy.Name, step)
		return nil
	case plan.Warn:
		return nil // an event, once the status remembers it (report.go)
	case plan.DeleteRun, plan.DeleteJob, plan.DeleteRights, plan.DeleteRuleset, plan.DeleteDeployment, plan.DeleteService, plan.DeleteSecret, plan.DeleteAdmission, plan.DeleteChildren:
		return r.delete(ctx, step)
	}
	return fmt.Errorf("unknown step %T", step)
}

// unchanged looks live whether the policy is as was decided by, its status included.
// The cache may lag behind what this manager has written: a policy that is not known to
// be active would have a foreign write undone as if it were active for the first time, and
// nobody would be told. A manager that lost its lease while it paused lags behind its
// successor.
func (r *ConversionPolicyReconciler) unchanged(ctx context.Context, policy *v1alpha1.ConversionPolicy) error {
	live := &v1alpha1.ConversionPolicy{}
	err := r.Live.Get(ctx, client.ObjectKeyFromObject(policy), live)
	if err == nil && (live.UID != policy.UID || live.ResourceVersion != policy.ResourceVersion) {
		err = apierrors.NewConflict(v1alpha1.GroupVersion.WithResource("conversionpolicies").GroupResource(), policy.Name,
			errors.New("the policy has changed since this was decided"))
	}
	return err
}

// describe names a step in an error.
func describe(step plan.Step) string {
	switch step := step.(type) {
	case plan.Apply:
		return "apply " + describeObject(step.Object)
	case plan.Create:
		return "create " + describeObject(step.Object)
	case plan.SwitchCRD:
		return "switch CustomResourceDefinition " + step.Pin.Name + " to the webhook"
	case plan.RestoreCRD:
		return "restore the conversion of CustomResourceDefinition " + step.Pin.Name
	case plan.EditVersions:
		return "change spec.versions of CustomResourceDefinition " + step.Pin.Name
	case plan.PruneStoredVersions:
		return "prune status.storedVersions of CustomResourceDefinition " + step.Pin.Name
	}
	return fmt.Sprintf("%T", step)
}

func describeObject(object runtime.ApplyConfiguration) string {
	content, err := toUnstructured(object)
	if err != nil {
		return fmt.Sprintf("%T", object)
	}
	return content.GetKind() + " " + content.GetName()
}

func (r *ConversionPolicyReconciler) setFinalizer(
	ctx context.Context, policy *v1alpha1.ConversionPolicy, change func(client.Object, string) bool,
) error {
	base := policy.DeepCopy()
	if !change(policy, plan.Finalizer) {
		return nil
	}
	patch := client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})
	return client.IgnoreNotFound(r.Client.Patch(ctx, policy, patch))
}

// applyObject brings one object to the wanted state, and writes nothing where it is there.
func (r *ConversionPolicyReconciler) applyObject(ctx context.Context, object runtime.ApplyConfiguration) error {
	wanted, err := toUnstructured(object)
	if err != nil {
		return err
	}
	if there, err := r.isThere(ctx, wanted); there || err != nil {
		return err
	}
	ctrl.LoggerFrom(ctx).V(1).Info("Applying", "kind", wanted.GetKind(), "name", wanted.GetName())
	return r.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(wanted), fieldOwner, client.ForceOwnership)
}

// isThere compares the wanted state with the cached object.
func (r *ConversionPolicyReconciler) isThere(ctx context.Context, wanted *unstructured.Unstructured) (bool, error) {
	sum, err := contentHash(wanted)
	if err != nil {
		return false, err
	}
	annotations := wanted.GetAnnotations()
	annotations[contentAnnotation] = sum
	wanted.SetAnnotations(annotations)

	current, err := r.cached(ctx, wanted.GroupVersionKind(), client.ObjectKeyFromObject(wanted))
	if current == nil || err != nil {
		return false, err
	}
	return contains(current, wanted.Object), nil
}

// cached returns the content of an object in the cache, nil where there is none.
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

// createObject makes an object that must not change once it exists.
func (r *ConversionPolicyReconciler) createObject(ctx context.Context, object runtime.ApplyConfiguration) error {
	wanted, err := toUnstructured(object)
	if err != nil {
		return err
	}
	return r.createOnce(ctx, wanted)
}

// createOnce leaves alone what was created before, by this manager or another.
// The cache holds only what carries our label: something of that name without
// it would be taken for absent for ever.
func (r *ConversionPolicyReconciler) createOnce(ctx context.Context, object client.Object) error {
	key, kind := client.ObjectKeyFromObject(object), fmt.Sprintf("%T", object)
	wanted := object.GetLabels()[plan.InstanceLabel]
	err := r.Client.Create(ctx, object, fieldOwner)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	there := object.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy is of the same type
	if err := r.Live.Get(ctx, key, there); err != nil {
		return client.IgnoreNotFound(err)
	}
	labels := there.GetLabels()
	if labels[plan.ManagedByLabel] != plan.ManagedBy || labels[plan.InstanceLabel] != wanted {
		return fmt.Errorf("%s %s exists without the labels %s=%s and %s=%s: delete it, or give it the labels",
			kind, key, plan.ManagedByLabel, plan.ManagedBy, plan.InstanceLabel, wanted)
	}
	return nil
}

func (r *ConversionPolicyReconciler) suspendRun(ctx context.Context, step plan.SuspendRun) error {
	patch := fmt.Appendf(nil, `{"spec":{"suspend":%t}}`, step.Suspend)
	return client.IgnoreNotFound(r.Client.Patch(ctx, r.job(step.Name), client.RawPatch(mergePatch, patch), fieldOwner))
}

// contentAnnotation holds a hash of what was applied, so that a field which is
// no longer wanted is noticed although the rest still matches.
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

// contains reports whether all that is wanted is there. It may say no where the
// API server would see no difference, a quantity written in another way for
// example; applying then changes nothing.
func contains(there, wanted any) bool {
	switch wanted := wanted.(type) {
	case map[string]any:
		members, ok := there.(map[string]any)
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
		elements, ok := there.([]any)
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
	return reflect.DeepEqual(there, wanted)
}
