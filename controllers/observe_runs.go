// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"context"
	"math"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/migration"
	"github.com/conversion-operator/conversion-operator/internal/plan"
)

// observeRuns reads the migration Jobs and what they recorded. Of some there is
// only the record: the Job is not made yet, or is being made anew.
func (r *ConversionPolicyReconciler) observeRuns(ctx context.Context, observed *plan.Observed) error {
	ofRuns := []client.ListOption{r.childrenOf(observed.Policy), client.HasLabels{plan.RunLabel}}
	jobs, records := &batchv1.JobList{}, &corev1.ConfigMapList{}
	if err := r.Client.List(ctx, jobs, ofRuns...); err != nil {
		return err
	}
	if err := r.Client.List(ctx, records, ofRuns...); err != nil {
		return err
	}
	runs := map[string]*plan.Run{}
	for i := range records.Items {
		id := records.Items[i].Labels[plan.RunLabel]
		runs[id] = &plan.Run{ID: id, Progress: progressIn(&records.Items[i])}
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
		observed.Runs = append(observed.Runs, *run)
	}
	return r.observeRights(ctx, observed)
}

// addJob joins a Job and its record, which come from two caches: of a Job that
// has ended, the last word is read live.
func (r *ConversionPolicyReconciler) addJob(ctx context.Context, runs map[string]*plan.Run, job *batchv1.Job) error {
	id := job.Labels[plan.RunLabel]
	run := runs[id]
	if run == nil {
		run = &plan.Run{ID: id}
		runs[id] = run
	}
	run.Job = job
	if !plan.JobEnded(job) || run.Progress != nil && run.Progress.Finished {
		return nil
	}
	record := &corev1.ConfigMap{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(job), record); err != nil {
		return client.IgnoreNotFound(err)
	}
	run.Progress = progressIn(record)
	return nil
}

// addTrouble says what keeps the pods of runs from starting.
func (r *ConversionPolicyReconciler) addTrouble(ctx context.Context, runs map[string]*plan.Run, ofRuns ...client.ListOption) error {
	list := &corev1.PodList{}
	if err := r.Client.List(ctx, list, ofRuns...); err != nil {
		return err
	}
	slices.SortFunc(list.Items, func(a, b corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	for i := range list.Items {
		pod := &list.Items[i]
		run := runs[pod.Labels[plan.RunLabel]]
		if run != nil && pod.Status.Phase == corev1.PodPending && pod.DeletionTimestamp.IsZero() {
			run.Trouble = cmp.Or(run.Trouble, trouble(pod))
		}
	}
	return nil
}

// progressIn is what a run's ConfigMap holds; nil where that is nothing yet.
func progressIn(record *corev1.ConfigMap) *plan.Progress {
	text, recorded := record.Data[migration.RecordKey]
	if !recorded {
		return nil
	}
	return progressOf(record.Labels[plan.RunLabel], text)
}

func (r *ConversionPolicyReconciler) observeRights(ctx context.Context, observed *plan.Observed) error {
	// Deleted last, and made first, whoever grants the rest.
	key := client.ObjectKey{Namespace: r.Settings.Namespace, Name: plan.MigrationRightsName(observed.Policy.Name)}
	err := r.Client.Get(ctx, key, &corev1.ServiceAccount{})
	observed.Rights = err == nil
	return client.IgnoreNotFound(err)
}

// migrators are the kinds by which others migrate: Kubernetes' own, and
// kube-storage-version-migrator's.
var migrators = []schema.GroupKind{
	{Group: "storagemigration.k8s.io", Kind: "StorageVersionMigration"},
	{Group: "migration.k8s.io", Kind: "StorageVersionMigration"},
}

// observeForeignMigration looks live whether somebody else migrates the same
// objects. Neither kind is served everywhere, so that neither is watched.
func (r *ConversionPolicyReconciler) observeForeignMigration(ctx context.Context, observed *plan.Observed) error {
	if observed.CRD == nil || !plan.MayMigrate(observed.Policy) {
		return nil
	}
	resource := schema.GroupResource{Group: observed.CRD.Spec.Group, Resource: observed.CRD.Spec.Names.Plural}
	for _, kind := range migrators {
		running, err := r.runningMigration(ctx, kind, resource)
		if err != nil {
			return err
		}
		if running != "" {
			observed.ForeignMigration = "storageversionmigrations." + kind.Group + "/" + running
			return nil
		}
	}
	return nil
}

// runningMigration names a migration of a resource that has begun and not ended.
func (r *ConversionPolicyReconciler) runningMigration(ctx context.Context, kind schema.GroupKind, resource schema.GroupResource) (string, error) {
	mapping, err := r.Client.RESTMapper().RESTMapping(kind)
	if apimeta.IsNoMatchError(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(mapping.GroupVersionKind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := r.Live.List(ctx, list); apimeta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return "", nil
	} else if err != nil {
		return "", err
	}
	var running []string
	for i := range list.Items {
		if migrates(&list.Items[i], resource) {
			running = append(running, list.Items[i].GetName())
		}
	}
	if len(running) == 0 {
		return "", nil
	}
	return slices.Min(running), nil
}

// migrates reports whether a migration of the resource is under way.
func migrates(object *unstructured.Unstructured, resource schema.GroupResource) bool {
	of, _, _ := unstructured.NestedStringMap(object.Object, "spec", "resource")
	if of["group"] != resource.Group || of["resource"] != resource.Resource {
		return false
	}
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	is := map[any]bool{}
	for _, condition := range conditions {
		if condition, ok := condition.(map[string]any); ok {
			is[condition["type"]] = condition["status"] == "True"
		}
	}
	return is["Running"] && !is["Succeeded"] && !is["Failed"]
}

// progressOf reads a run's record. One that cannot be read, or is another run's,
// proves nothing: it ends the run as one that could not go on.
func progressOf(run, text string) *plan.Progress {
	record, err := migration.ParseRecord([]byte(text))
	if err != nil {
		return &plan.Progress{Finished: true, Aborted: err.Error()}
	}
	if record.Run != run {
		return &plan.Progress{Finished: true, Aborted: "the record is of run " + record.Run}
	}
	progress := &plan.Progress{
		Finished: record.Finished(), Complete: record.Complete(),
		Step: steps[record.State], Waiting: record.Waiting,
		Total: record.Total, Rewritten: record.Rewritten, Current: record.Current, Gone: record.Gone, Failed: record.Failed,
		Verified: record.Verified, ByFallback: record.ByFallback,
		// A run that does one object in some seconds does not stand still.
		RatePerSecond:       int64(math.Ceil(record.RatePerSecond)),
		EstimatedCompletion: record.EstimatedCompletion,
		Started:             record.StartTime,
	}
	if record.BarrierKind != "" {
		progress.Barrier = &v1alpha1.MigrationBarrier{Kind: v1alpha1.BarrierKind(record.BarrierKind), APIServers: int32(record.APIServers)} //nolint:gosec // no cluster has as many
	}
	if record.State == migration.StateAborted {
		progress.Aborted = record.Message
	}
	if record.Ruleset != "" {
		progress.Held = &plan.Held{Ruleset: record.Ruleset, Since: record.CountedFrom().Time}
		if record.Preserved != nil {
			progress.Held.Holdings = *record.Preserved
		}
	}
	progress.Placed, progress.NotPlaced, progress.Refused = record.Placed, record.Unplaced, failuresOf(record.Refused)
	progress.Predicted, progress.Failures = failuresOf(record.Predicted), failuresOf(record.Failures)
	return progress
}

// failuresOf are as many as a status names.
func failuresOf(recorded []migration.Failure) []v1alpha1.MigrationFailure {
	var failures []v1alpha1.MigrationFailure
	for _, f := range recorded[:min(len(recorded), maxNames)] {
		failures = append(failures, v1alpha1.MigrationFailure{Object: f.Object, Reason: string(f.Reason), Message: f.Message, Command: f.Command})
	}
	return failures
}

// steps are what a run is at by the states of its record. One that has ended is
// at none.
var steps = map[migration.State]v1alpha1.MigrationStep{
	migration.StatePreflight: v1alpha1.MigrationTrying,
	migration.StateSettling:  v1alpha1.MigrationSettling,
	migration.StateRunning:   v1alpha1.MigrationRewriting,
	migration.StateAuditing:  v1alpha1.MigrationAuditing,
	migration.StateVerifying: v1alpha1.MigrationVerifying,
}
