// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/fleet"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
)

// observeFleets reads the fleets that matter to a policy: their pods, certificates and shards, and
// which rulesets of the policy are stored there. It records for the fleets that the policy uses
// them.
func (r *ConversionPolicyReconciler) observeFleets(ctx context.Context, state *observed.Cluster) error {
	used := observed.FleetsOf(state.Policy, state.CRD)
	r.fleetUsers.record(state, used)
	shards, err := r.allShards(ctx)
	if err != nil {
		return err
	}
	used = append(used, fleetsStoring(shards, state.Policy.Name)...)
	slices.Sort(used)
	for _, name := range slices.Compact(used) {
		if err := r.observeFleet(ctx, state, name, shards[name]); err != nil {
			return err
		}
	}
	return nil
}

func (r *ConversionPolicyReconciler) observeFleet(ctx context.Context, state *observed.Cluster, name string, shards map[string]*corev1.ConfigMap) error {
	of := observed.Fleet{Name: name}
	object := &v1alpha1.ConverterFleet{}
	err := r.Client.Get(ctx, client.ObjectKey{Name: name}, object)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	of.Found = err == nil
	of.Exists = of.Found && object.DeletionTimestamp.IsZero() && controllerutil.ContainsFinalizer(object, names.Finalizer)
	of.Spec = object.Spec
	_, serving, _ := names.FleetSecrets(name)
	if of.Certificate, err = r.secret(ctx, r.Client, serving); err != nil {
		return err
	}
	failure, scaled, err := r.deployment(ctx, names.Fleet(name))
	if err != nil {
		return err
	}
	of.PodFailure, of.Replicas = failure, fleet.Workload(r.Settings, object, scaled).Replicas()
	if of.Endpoints, _, err = r.endpoints(ctx, names.Fleet(name)); err != nil {
		return err
	}
	if of.Evictable, err = r.evictable(ctx, names.Fleet(name)); err != nil {
		return err
	}
	pods, ending, err := r.listPods(ctx, names.Fleet(name))
	if err != nil {
		return err
	}
	state.Pods, state.Ending = append(state.Pods, pods...), append(state.Ending, ending...)
	if shards == nil { // there was no such fleet, but its shards may be left
		if shards, err = r.shards(ctx, name); err != nil {
			return err
		}
	}
	for number := range names.Shards {
		shard := shards[names.Shard(name, number)]
		of.Shards[number] = r.shardWrites.bytes(name, names.Shard(name, number), shard, state.Now)
		if shard == nil {
			continue
		}
		for _, stored := range shard.BinaryData {
			of.Shards[number] += len(stored)
		}
		state.Revisions = append(state.Revisions, r.rulesets.readShard(state.Policy.Name, name, shard)...)
	}
	state.Fleets = append(state.Fleets, of)
	return nil
}

// allShards returns the shards of all fleets, by fleet and name.
func (r *ConversionPolicyReconciler) allShards(ctx context.Context) (map[string]map[string]*corev1.ConfigMap, error) {
	list := &v1alpha1.ConverterFleetList{}
	if err := r.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	all := map[string]map[string]*corev1.ConfigMap{}
	for i := range list.Items {
		shards, err := r.shards(ctx, list.Items[i].Name)
		if err != nil {
			return nil, err
		}
		all[list.Items[i].Name] = shards
	}
	return all, nil
}

// shards returns the ConfigMaps with the rulesets of a fleet, by name. They are not copied from the
// cache, and must not be changed.
func (r *ConversionPolicyReconciler) shards(ctx context.Context, name string) (map[string]*corev1.ConfigMap, error) {
	list := &corev1.ConfigMapList{}
	err := r.Client.List(ctx, list, client.InNamespace(r.Settings.Namespace), client.UnsafeDisableDeepCopy, client.MatchingLabels{
		names.InstanceLabel: names.Fleet(name), names.ManagedByLabel: names.ManagedBy})
	if err != nil {
		return nil, err
	}
	shards := map[string]*corev1.ConfigMap{}
	for i := range list.Items {
		shards[list.Items[i].Name] = &list.Items[i]
	}
	return shards, nil
}

// deployment returns why a Deployment cannot create pods, and its replicas; none if it does not exist.
func (r *ConversionPolicyReconciler) deployment(ctx context.Context, name string) (failure observed.PodTrouble, replicas int32, err error) {
	object := &appsv1.Deployment{}
	err = r.Client.Get(ctx, client.ObjectKey{Namespace: r.Settings.Namespace, Name: name}, object)
	return replicaFailure(object), ptr.Deref(object.Spec.Replicas, 0), client.IgnoreNotFound(err)
}
