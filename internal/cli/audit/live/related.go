// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"errors"
	"fmt"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/cli/audit"
	verify "github.com/conversion-operator/conversion-operator/internal/operator/verify/live"
)

// readRelated reads the objects that may belong to definitions. A cluster may lack their kinds.
func (a *auditor) readRelated(ctx context.Context) error {
	policies := v1alpha1.ConversionPolicyList{}
	group := v1alpha1.GroupVersion
	if err := a.optional(ctx, "ConversionPolicies", &policies, "/apis", group.Group, group.Version, "conversionpolicies"); err != nil {
		return err
	}
	for i := range policies.Items {
		a.policies[policies.Items[i].Name] = &policies.Items[i]
	}
	return a.readMigrations(ctx)
}

// optional reads a list whose kind may be missing or forbidden. It fails only if it
// cannot reach an API server.
func (a *auditor) optional(ctx context.Context, what string, into any, path ...string) error {
	err := verify.Send(ctx, a.client.Get().AbsPath(path...), into)
	switch {
	case err == nil, apierrors.IsNotFound(err):
		return nil
	case isAnswer(err):
		a.skip("", what, err)
		return nil
	}
	return fmt.Errorf("read %s: %w", what, err)
}

// isAnswer reports whether an error is an answer of an API server to an authenticated
// client.
func isAnswer(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && !apierrors.IsUnauthorized(err)
}

// migrationVersions of storagemigration.k8s.io, of which a cluster has one or two.
// All of them have these fields.
var migrationVersions = []string{"v1", "v1beta1", "v1alpha1"}

type migration struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     struct {
		Resource metav1.GroupResource `json:"resource"`
	} `json:"spec"`
	Status struct {
		Conditions []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

func (a *auditor) readMigrations(ctx context.Context) error {
	for _, version := range migrationVersions {
		var list struct {
			Kind  string      `json:"kind"`
			Items []migration `json:"items"`
		}
		err := a.optional(ctx, "StorageVersionMigrations", &list, "/apis/storagemigration.k8s.io", version, "storageversionmigrations")
		if err != nil {
			return err
		}
		for _, item := range list.Items {
			resource := item.Spec.Resource
			name := resource.Resource + "." + resource.Group
			a.migrations[name] = append(a.migrations[name], item.observed())
		}
		if list.Kind != "" {
			return nil
		}
	}
	return nil
}

func (m *migration) observed() audit.Migration {
	found := audit.Migration{Name: m.Metadata.Name}
	if failed := meta.FindStatusCondition(m.Status.Conditions, "Failed"); failed != nil && failed.Status == metav1.ConditionTrue {
		found.Failed, found.Ended = failed.Message, failed.LastTransitionTime.Time
		if found.Failed == "" {
			found.Failed = "it gives no reason"
		}
	}
	if succeeded := meta.FindStatusCondition(m.Status.Conditions, "Succeeded"); succeeded != nil && succeeded.Status == metav1.ConditionTrue {
		found.Succeeded, found.Ended = true, succeeded.LastTransitionTime.Time
	}
	return found
}

// autoscalers returns the HorizontalPodAutoscalers of a kind, by namespace/name. It reads all of the cluster, once.
func (a *auditor) autoscalers(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) []string {
	a.readAutoscalers.Do(func() {
		var list autoscalingv2.HorizontalPodAutoscalerList
		if err := a.optional(ctx, "HorizontalPodAutoscalers", &list, "/apis/autoscaling/v2/horizontalpodautoscalers"); err != nil {
			a.skip("", "HorizontalPodAutoscalers", err)
		}
		for i := range list.Items {
			scaler := &list.Items[i]
			group, _, _ := strings.Cut(scaler.Spec.ScaleTargetRef.APIVersion, "/")
			kind := schema.GroupKind{Group: group, Kind: scaler.Spec.ScaleTargetRef.Kind}
			a.scalers[kind] = append(a.scalers[kind], scaler.Namespace+"/"+scaler.Name)
		}
	})
	return a.scalers[schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}]
}
