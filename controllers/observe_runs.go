// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/migration/others"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/migration"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
)

// observeRuns reads the migration Jobs and their records. A record may have no Job: the Job is not
// created yet, or is being recreated.
func (r *ConversionPolicyReconciler) observeRuns(ctx context.Context, state *observed.Cluster) error {
	ofRuns := []client.ListOption{r.childrenOf(state.Policy), client.HasLabels{names.RunLabel}}
	jobs, records := &batchv1.JobList{}, &corev1.ConfigMapList{}
	if err := r.Client.List(ctx, jobs, ofRuns...); err != nil {
		return err
	}
	if err := r.Client.List(ctx, records, ofRuns...); err != nil {
		return err
	}
	runs := map[string]*observed.Run{}
	for i := range records.Items {
		id := records.Items[i].Labels[names.RunLabel]
		runs[id] = &observed.Run{ID: id, Record: recordIn(&records.Items[i])}
	}
	for i := range jobs.Items {
		if err := r.addJob(ctx, runs, &jobs.Items[i]); err != nil {
			return err
		}
	}
	if err := r.addTrouble(ctx, runs, ofRuns...); err != nil {
		return err
	}
	for _, run := range runs {
		state.Runs = append(state.Runs, *run)
	}
	return r.observeRights(ctx, state)
}

// addJob joins a Job and its record. They come from two caches, so the record of a finished Job is
// read live unless it is final.
func (r *ConversionPolicyReconciler) addJob(ctx context.Context, runs map[string]*observed.Run, job *batchv1.Job) error {
	id := job.Labels[names.RunLabel]
	run := runs[id]
	if run == nil {
		run = &observed.Run{ID: id}
		runs[id] = run
	}
	run.Job = job
	if !observed.JobEnded(job) || run.Record != nil && run.Record.Finished() {
		return nil
	}
	record := &corev1.ConfigMap{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(job), record); err != nil {
		return client.IgnoreNotFound(err)
	}
	run.Record = recordIn(record)
	return nil
}

// addTrouble adds what keeps the pods of runs from starting.
func (r *ConversionPolicyReconciler) addTrouble(ctx context.Context, runs map[string]*observed.Run, ofRuns ...client.ListOption) error {
	list := &corev1.PodList{}
	if err := r.Client.List(ctx, list, ofRuns...); err != nil {
		return err
	}
	slices.SortFunc(list.Items, func(a, b corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	for i := range list.Items {
		pod := &list.Items[i]
		run := runs[pod.Labels[names.RunLabel]]
		if run != nil && pod.Status.Phase == corev1.PodPending && pod.DeletionTimestamp.IsZero() {
			run.Trouble = cmp.Or(run.Trouble, trouble(pod))
		}
	}
	return nil
}

// recordIn returns the record in a run's ConfigMap, or nil if the run has not written one.
func recordIn(configMap *corev1.ConfigMap) *contract.Record {
	text, recorded := configMap.Data[contract.RecordKey]
	if !recorded {
		return nil
	}
	return contract.ReadRecord(configMap.Labels[names.RunLabel], text)
}

func (r *ConversionPolicyReconciler) observeRights(ctx context.Context, state *observed.Cluster) error {
	// The ServiceAccount is created first and deleted last, no matter which client grants the rights.
	// If it stays, the Role is.
	key, account := client.ObjectKey{Namespace: r.Settings.Namespace, Name: names.MigrationRights(state.Policy.Name)}, &corev1.ServiceAccount{}
	err := r.Client.Get(ctx, key, account)
	if state.KeepAccount = prepared(account); state.KeepAccount {
		err = r.Client.Get(ctx, key, &rbacv1.Role{})
	}
	state.Rights = err == nil
	return client.IgnoreNotFound(err)
}

// prepared reports that an administrator gave pull secrets to a ServiceAccount, for registries that
// need them. OpenShift gives each account one, for its own registry, whose name starts with that of
// the account.
func prepared(account *corev1.ServiceAccount) bool {
	return slices.ContainsFunc(account.ImagePullSecrets, func(secret corev1.LocalObjectReference) bool {
		return !strings.HasPrefix(secret.Name, account.Name+"-dockercfg-")
	})
}

// observeForeignMigration reads live whether another client migrates the same objects. Not every
// API server serves these kinds, so the operator does not watch them.
func (r *ConversionPolicyReconciler) observeForeignMigration(ctx context.Context, state *observed.Cluster) error {
	if state.CRD == nil || !migration.MayMigrate(state.Policy) {
		return nil
	}
	resource := schema.GroupResource{Group: state.CRD.Spec.Group, Resource: state.CRD.Spec.Names.Plural}
	for _, kind := range others.Kinds {
		running, err := r.runningMigration(ctx, kind, resource)
		if err != nil {
			return err
		}
		if running != "" {
			state.ForeignMigration = "storageversionmigrations." + kind.Group + "/" + running
			return nil
		}
	}
	return nil
}

// runningMigration returns the name of a migration of the resource that runs, or an empty string.
func (r *ConversionPolicyReconciler) runningMigration(ctx context.Context, kind schema.GroupKind, resource schema.GroupResource) (string, error) {
	if seen, _ := r.absentKinds.get(kind); time.Since(seen) < absentFor {
		return "", nil
	}
	mapping, err := r.Client.RESTMapper().RESTMapping(kind)
	if apimeta.IsNoMatchError(err) {
		r.absentKinds.put(kind, time.Now())
		return "", nil
	}
	if err != nil {
		return "", err
	}
	list := others.NewList(mapping)
	if err := r.Live.List(ctx, list); apimeta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return "", nil
	} else if err != nil {
		return "", err
	}
	return others.Running(list, resource), nil
}

// absentFor is how long a kind that the API server does not know is not looked for again.
const absentFor = 10 * time.Second
