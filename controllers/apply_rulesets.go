// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
)

// storeRulesets adds and removes rulesets in shards. Each patch names only keys of single policies, and
// the content of a key never changes, so that the order of patches for several policies, by several
// managers, does not matter. The API server refuses a shard that becomes too large.
func (r *ConversionPolicyReconciler) storeRulesets(ctx context.Context, policy string, s step.StoreRulesets) error {
	var removed []shardWrite
	for _, ruleset := range s.Remove {
		key := conversion.StoredName(s.Owner, ruleset.Hash)
		r.shardWrites.drop(s.Fleet, key)
		removed = append(removed, shardWrite{policy: policy, configMap: ruleset.ConfigMap, key: key})
	}
	if err := r.writeShards(ctx, s.Fleet, removed, false); err != nil {
		return err
	}
	var added []shardWrite
	for _, ruleset := range s.Add {
		added = append(added, shardWrite{policy: policy, configMap: ruleset.ConfigMap, key: conversion.StoredName(s.Owner, ruleset.Hash), stored: ruleset.Stored})
	}
	if len(added) == 0 {
		return nil
	}
	return r.addRulesets(ctx, s.Fleet, policy, added)
}

// patchShard changes keys of a shard; nil removes a key. If create is true, it creates a shard that
// does not exist.
func (r *ConversionPolicyReconciler) patchShard(ctx context.Context, fleet, name string, keys map[string][]byte, create bool) error {
	patch := mergePatch(map[string]any{"binaryData": keys})
	shard := &corev1.ConfigMap{}
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: r.Settings.Namespace, Name: name}, shard) // the cache has only objects of the operator
	if err == nil {
		err = r.Client.Patch(ctx, &corev1.ConfigMap{ObjectMeta: r.named(name)}, patch, fieldOwner)
	}
	if !apierrors.IsNotFound(err) || !create {
		return client.IgnoreNotFound(err)
	}
	shard = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.Settings.Namespace, Name: name,
		Labels: names.FleetLabels(fleet), Annotations: map[string]string{names.FleetAnnotation: fleet}}}
	if err := r.createOnce(ctx, shard); err != nil {
		return err
	}
	return r.Client.Patch(ctx, shard, patch, fieldOwner)
}
