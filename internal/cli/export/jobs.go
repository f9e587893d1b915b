// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package export

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	batchv1apply "k8s.io/client-go/applyconfigurations/batch/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/conversion-operator/conversion-operator/internal/migration/standalone"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/podspec"
)

const (
	// CheckCommand is the command of the Job that checks the pods.
	CheckCommand = "check-converter"

	checkComponent = "check"
	rulesetsMount  = "/etc/conversion-operator/rulesets"
	caMount        = "/etc/conversion-operator/ca"
)

func (c Converter) checkName() string   { return c.Name + "-check" }
func (c Converter) migrateName() string { return c.Name + "-migrate" }

// account is a ServiceAccount with rights.
func (c Converter) account(name, component string, rights ...standalone.Right) []any {
	account := corev1apply.ServiceAccount(name, c.Namespace).WithLabels(c.labels(component))
	return append([]any{account}, standalone.Roles(name, rights, &standalone.Subject{Namespace: c.Namespace, Name: name})...)
}

// checkJob waits until all pods serve the ruleset.
func (c Converter) checkJob() *batchv1apply.JobApplyConfiguration {
	return c.named(c.job(c.checkName(), checkComponent, c.rulesetsName()))
}

// job runs a check of the rulesets of a ConfigMap.
func (c Converter) job(name, component, rulesets string) *batchv1apply.JobApplyConfiguration {
	pod := c.pod(name, CheckCommand, "--namespace="+c.Namespace, "--name="+c.Name, "--rulesets="+rulesetsMount, "--ca="+caMount+"/"+observed.CAKey)
	pod.WithVolumes(
		corev1apply.Volume().WithName("rulesets").WithConfigMap(corev1apply.ConfigMapVolumeSource().WithName(rulesets)),
		// Without the private key.
		corev1apply.Volume().WithName("ca").WithSecret(corev1apply.SecretVolumeSource().WithSecretName(c.certificate()).
			WithItems(corev1apply.KeyToPath().WithKey(observed.CAKey).WithPath(observed.CAKey))))
	pod.Containers[0].WithVolumeMounts(
		corev1apply.VolumeMount().WithName("rulesets").WithMountPath(rulesetsMount).WithReadOnly(true),
		corev1apply.VolumeMount().WithName("ca").WithMountPath(caMount).WithReadOnly(true))
	return c.run(name, component, pod)
}

// migrateJob rewrites the stored objects.
func (c Converter) migrateJob() *batchv1apply.JobApplyConfiguration {
	return c.run(c.migrateName(), names.MigrationComponent,
		c.pod(c.migrateName(), "migrate", c.CRD.Name, "--record-namespace="+c.Namespace))
}

// migration is the Job with its rights, to run after the storage version has changed.
func (c Converter) migration() []any {
	return append(c.migrationRights(), c.named(c.migrateJob()))
}

func (c Converter) migrationRights() []any {
	target := standalone.Target{CRD: c.CRD, Resource: schema.GroupVersionResource{
		Group: c.CRD.Spec.Group, Version: crds.StorageVersion(c.CRD), Resource: c.CRD.Spec.Names.Plural}}
	rights := standalone.Rights(standalone.Scope{Targets: []standalone.Target{target}}, &standalone.Options{RecordNamespace: c.Namespace},
		func(schema.GroupKind) bool { return true }) // the cluster is unknown
	return c.account(c.migrateName(), names.MigrationComponent, rights...)
}

// pod runs a command of the operator's image as a ServiceAccount.
func (c Converter) pod(account, command string, args ...string) *corev1apply.PodSpecApplyConfiguration {
	pod := corev1apply.PodSpec().
		WithServiceAccountName(account).WithEnableServiceLinks(false).WithRestartPolicy(corev1.RestartPolicyOnFailure).
		WithSecurityContext(podspec.Restricted()).
		WithContainers(corev1apply.Container().WithName(command).WithImage(c.Image).WithImagePullPolicy(corev1.PullIfNotPresent).
			WithArgs(append([]string{command}, args...)...).
			WithSecurityContext(podspec.RestrictedContainer()))
	podspec.Inherited{}.Apply(pod, c.Pods.Placement)
	return pod
}

// run is a Job. Its command waits and tries again by itself, so that few failures are enough.
func (c Converter) run(name, component string, pod *corev1apply.PodSpecApplyConfiguration) *batchv1apply.JobApplyConfiguration {
	template := corev1apply.PodTemplateSpec().WithLabels(c.labels(component)).WithSpec(pod)
	return batchv1apply.Job(name, c.Namespace).WithLabels(c.labels(component)).WithSpec(batchv1apply.JobSpec().WithBackoffLimit(2).WithTemplate(template))
}

// named names a Job by what it runs: a Job cannot change.
func (c Converter) named(job *batchv1apply.JobApplyConfiguration) *batchv1apply.JobApplyConfiguration {
	return job.WithName(*job.Name + "-" + names.Hash(documents(job.Spec), c.key())[:8])
}
