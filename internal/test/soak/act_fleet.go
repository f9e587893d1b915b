// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/plan/names"
)

// Actions and failures of fleets.

// createFleet creates a fleet with default settings.
func (p *player) createFleet(ctx context.Context, name string) error {
	return p.eventually(ctx, "fleet "+name+" is created", func(ctx context.Context) error {
		created := &v1alpha1.ConverterFleet{ObjectMeta: metav1.ObjectMeta{Name: name}}
		return client.IgnoreAlreadyExists(p.cluster.Create(ctx, created))
	})
}

// deleteFleet deletes a fleet that no policy uses, and waits until nothing of it is left.
func (p *player) deleteFleet(ctx context.Context, name string) error {
	if err := p.deleteWhole(ctx, &v1alpha1.ConverterFleet{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		return err
	}
	return p.eventually(ctx, "nothing of fleet "+name+" is left", func(ctx context.Context) error {
		for _, kind := range childKinds {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(kind)
			if err := p.cluster.List(ctx, list, client.MatchingLabels{names.InstanceLabel: names.Fleet(name)}); err != nil {
				return err
			}
			for _, item := range list.Items {
				return fmt.Errorf("there is the %s %s", kind.Kind, item.GetName())
			}
		}
		return nil
	})
}

func (p *player) patchFleet(ctx context.Context, name string, spec map[string]any) error {
	return p.patchSpec(ctx, &v1alpha1.ConverterFleet{ObjectMeta: metav1.ObjectMeta{Name: name}}, spec)
}

// patchSpec changes fields of an object's spec.
func (p *player) patchSpec(ctx context.Context, object client.Object, spec map[string]any) error {
	patch, err := mergePatch(spec)
	if err != nil {
		return err
	}
	return p.eventually(ctx, fmt.Sprintf("%T %s is changed", object, object.GetName()), func(ctx context.Context) error {
		return p.cluster.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch), client.FieldOwner("user"))
	})
}

func (p *player) scaleFleet(ctx context.Context, s step) error {
	name, replicas := readSize(s.Detail)
	return p.patchFleet(ctx, name, map[string]any{"replicas": replicas})
}

func (p *player) scaleManager(ctx context.Context, s step) error {
	manager := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: operator}}
	return p.patchSpec(ctx, manager, map[string]any{"replicas": readManagers(s.Detail)})
}

func (p *player) rotateFleet(ctx context.Context, s step) error {
	return p.patchFleet(ctx, s.Detail, inCertificates("rotationTrigger", s.Text))
}

// replaceFleet deletes a fleet. If policies use it, it stays until they have moved to the other one.
func (p *player) replaceFleet(ctx context.Context, s step) error {
	object := &v1alpha1.ConverterFleet{ObjectMeta: metav1.ObjectMeta{Name: s.Detail}}
	err := p.eventually(ctx, "the fleet is deleted, and stays", func(ctx context.Context) error {
		if err := p.cluster.Delete(ctx, object); err != nil {
			return err
		}
		if err := p.cluster.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		blocked := apimeta.FindStatusCondition(object.Status.Conditions, v1alpha1.DeletionBlockedCondition)
		if blocked == nil || blocked.Reason != v1alpha1.ReasonFleetInUse {
			return fmt.Errorf("the deletion is not blocked: %+v", object.Status.Conditions)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, after := range s.After {
		if after.Policy && after.Fleet == otherFleet(s.Detail) {
			move := s
			move.Subject = after.Name
			if err := p.movePolicy(ctx, move); err != nil {
				return err
			}
		}
	}
	if err := p.neighbors.move(ctx, s.Detail); err != nil {
		return err
	}
	if err := p.deleteFleet(ctx, s.Detail); err != nil {
		return err
	}
	return p.createFleet(ctx, s.Detail)
}

// deleteFleetPods deletes pods of a fleet, as when a node is drained without regard to the
// PodDisruptionBudget.
func (p *player) deleteFleetPods(ctx context.Context, s step) error {
	what, name := cutFleet(s.Detail)
	pods := &corev1.PodList{}
	err := p.eventually(ctx, "the pods of the fleet are read", func(ctx context.Context) error {
		return p.cluster.List(ctx, pods, client.InNamespace(system), client.MatchingLabels{names.InstanceLabel: names.Fleet(name)})
	})
	ready := slices.DeleteFunc(pods.Items, func(pod corev1.Pod) bool { return !isReady(pod) })
	if err != nil || len(ready) < 2 {
		return err
	}
	victims := ready[1:]
	if what == onePod {
		victims = ready[:1]
	}
	for i := range victims {
		err := p.eventually(ctx, "a pod is deleted", func(ctx context.Context) error {
			return client.IgnoreNotFound(p.cluster.Delete(ctx, &victims[i]))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// editRulesets changes ConfigMaps of a fleet, which only the operator should.
func (p *player) editRulesets(ctx context.Context, s step) error {
	what, name := cutFleet(s.Detail)
	return p.eventually(ctx, "rulesets are edited", func(ctx context.Context) error {
		shards := &corev1.ConfigMapList{}
		if err := p.cluster.List(ctx, shards, client.InNamespace(system), client.MatchingLabels{names.InstanceLabel: names.Fleet(name)}); err != nil {
			return err
		}
		for i := range shards.Items {
			shard := &shards.Items[i]
			if what == deleteRulesets {
				if err := p.cluster.Delete(ctx, shard); client.IgnoreNotFound(err) != nil {
					return err
				}
				continue
			}
			keys := sortedKeys(shard.BinaryData)
			if len(keys) == 0 {
				continue
			}
			edited := map[string]any{keys[0]: nil}
			if what == damageRuleset {
				edited[keys[0]] = []byte("damaged")
			}
			patch, err := json.Marshal(map[string]any{"binaryData": edited})
			if err != nil {
				return err
			}
			return p.cluster.Patch(ctx, shard, client.RawPatch(types.MergePatchType, patch), client.FieldOwner("kubectl-edit"))
		}
		return nil
	})
}

// deleteFleetChild deletes an object that the operator created for a fleet. The object may not exist
// yet.
func (p *player) deleteFleetChild(ctx context.Context, s step) error {
	what, name := cutFleet(s.Detail)
	authority, serving, _ := names.FleetSecrets(name)
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: system, Name: name} }
	victim := map[string]client.Object{
		"Deployment":          &appsv1.Deployment{ObjectMeta: named(names.Fleet(name))},
		"Service":             &corev1.Service{ObjectMeta: named(names.Fleet(name))},
		"serving certificate": &corev1.Secret{ObjectMeta: named(serving)},
		"authority":           &corev1.Secret{ObjectMeta: named(authority)},
	}[what]
	return p.eventually(ctx, "the "+what+" is deleted", func(ctx context.Context) error {
		return client.IgnoreNotFound(p.cluster.Delete(ctx, victim))
	})
}

func (p *player) ageFleetCertificate(ctx context.Context, s step) error {
	authority, serving, _ := names.FleetSecrets(s.Detail)
	return p.age(ctx, authority, serving, names.FleetServerName(s.Detail, system))
}

// failures returns an error that names the CRDs for which more conversions have failed than before.
func failures(before, after map[string]int) error {
	var wrong []error
	for _, crd := range sortedKeys(after) {
		if more := after[crd] - before[crd]; more > 0 {
			wrong = append(wrong, fmt.Errorf("%d conversions of %s failed, and none should: pods that convert were there all the time", more, crd))
		}
	}
	return errors.Join(wrong...)
}
