// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	batchv1apply "k8s.io/client-go/applyconfigurations/batch/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	rbacv1apply "k8s.io/client-go/applyconfigurations/rbac/v1"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/crds"
)

// migrationRestarts is how often a migration pod may fail before the run is
// given up: enough for node drains and API servers that restart.
const migrationRestarts = 10

// startRun gives a run its rights, its checkpoint and its Job. A Job that
// exists is not touched, but for going on after a suspension.
func (s *state) startRun(run Run, storage string) []Step {
	steps := []Step{Apply{s.migrationAccount()}}
	if s.Granted == nil {
		steps = append(steps, Apply{s.resourceRole()}, Apply{s.resourceBinding()})
	}
	steps = append(steps,
		Apply{s.checkpointRole(run.ID)}, Apply{s.checkpointBinding()},
		Apply{s.flowSchema()},
		Apply{s.checkpoint(run.ID)})
	switch {
	case run.Job == nil:
		steps = append(steps, Create{s.migrationJob(run.ID, storage)})
	case suspended(run):
		steps = append(steps, SuspendRun{Name: run.Job.Name, Suspend: false})
	}
	return steps
}

// otherSettings reports that the run's pods were started with other flags than
// the policy asks for now. Those of a Job cannot be changed.
func (s *state) otherSettings(run Run, storage string) bool {
	if run.Job == nil || !run.Job.DeletionTimestamp.IsZero() || len(run.Job.Spec.Template.Spec.Containers) == 0 {
		return false
	}
	return !slices.Equal(run.Job.Spec.Template.Spec.Containers[0].Args, s.migrationArgs(run.ID, storage))
}

func (s *state) migrationAccount() *corev1apply.ServiceAccountApplyConfiguration {
	return corev1apply.ServiceAccount(MigrationRightsName(s.Policy.Name), s.Settings.Namespace).
		WithLabels(s.labels(MigrationComponent)).WithAnnotations(s.annotations()).
		WithAutomountServiceAccountToken(false)
}

// resourceRole grants list and patch on the one resource, a look at the
// CustomResourceDefinition that the run is pinned to, and at where API servers
// are, and nothing else.
func (s *state) resourceRole() *rbacv1apply.ClusterRoleApplyConfiguration {
	grant, _, _ := Grants(s.Observed)
	return rbacv1apply.ClusterRole(MigrationRightsName(s.Policy.Name)).
		WithLabels(s.labels(MigrationComponent)).WithAnnotations(s.annotations()).
		WithRules(rbacv1apply.PolicyRule().
			WithAPIGroups(grant.Group).WithResources(grant.Resources...).WithVerbs(grant.Verbs...),
			rbacv1apply.PolicyRule().
				WithAPIGroups("apiextensions.k8s.io").WithResources("customresourcedefinitions").
				WithResourceNames(s.CRD.Name).WithVerbs("get"),
			// The addresses of the Service kubernetes, each of which is asked whether it
			// writes at the storage version already.
			rbacv1apply.PolicyRule().
				WithAPIGroups("discovery.k8s.io").WithResources("endpointslices").WithVerbs("list"),
			// Each API server holds one, so that they can be counted behind a load balancer.
			rbacv1apply.PolicyRule().
				WithAPIGroups("coordination.k8s.io").WithResources("leases").WithVerbs("list"))
}

func (s *state) resourceBinding() *rbacv1apply.ClusterRoleBindingApplyConfiguration {
	name := MigrationRightsName(s.Policy.Name)
	return rbacv1apply.ClusterRoleBinding(name).
		WithLabels(s.labels(MigrationComponent)).WithAnnotations(s.annotations()).
		WithRoleRef(rbacv1apply.RoleRef().WithAPIGroup("rbac.authorization.k8s.io").WithKind("ClusterRole").WithName(name)).
		WithSubjects(s.migrationSubject())
}

// checkpointRole lets a run record its progress where only it can, and read what
// failed in the run that it retries.
func (s *state) checkpointRole(id string) *rbacv1apply.RoleApplyConfiguration {
	configMap := func(id string) *rbacv1apply.PolicyRuleApplyConfiguration {
		return rbacv1apply.PolicyRule().WithAPIGroups("").WithResources("configmaps").WithResourceNames(RunName(s.Policy.Name, id))
	}
	role := rbacv1apply.Role(MigrationRightsName(s.Policy.Name), s.Settings.Namespace).
		WithLabels(s.labels(MigrationComponent)).WithAnnotations(s.annotations()).
		WithRules(configMap(id).WithVerbs("get", "patch"))
	if retried := s.plan.Status.Migration.RetryOf; retried != "" {
		role.WithRules(configMap(retried).WithVerbs("get"))
	}
	if ruleset := s.plan.Status.Migration.Ruleset; ruleset != "" {
		role.WithRules(rbacv1apply.PolicyRule().WithAPIGroups("").WithResources("configmaps").
			WithResourceNames(PlanName(s.Policy.Name, ruleset)).WithVerbs("get"))
	}
	return role
}

func (s *state) checkpointBinding() *rbacv1apply.RoleBindingApplyConfiguration {
	name := MigrationRightsName(s.Policy.Name)
	return rbacv1apply.RoleBinding(name, s.Settings.Namespace).
		WithLabels(s.labels(MigrationComponent)).WithAnnotations(s.annotations()).
		WithRoleRef(rbacv1apply.RoleRef().WithAPIGroup("rbac.authorization.k8s.io").WithKind("Role").WithName(name)).
		WithSubjects(s.migrationSubject())
}

func (s *state) migrationSubject() *rbacv1apply.SubjectApplyConfiguration {
	return rbacv1apply.Subject().WithKind("ServiceAccount").
		WithNamespace(s.Settings.Namespace).WithName(MigrationRightsName(s.Policy.Name))
}

// checkpoint has no data here: what the run recorded stays when it is applied again.
func (s *state) checkpoint(id string) *corev1apply.ConfigMapApplyConfiguration {
	return corev1apply.ConfigMap(RunName(s.Policy.Name, id), s.Settings.Namespace).
		WithLabels(s.runLabels(id)).WithAnnotations(s.annotations())
}

func (s *state) migrationJob(id, storage string) *batchv1apply.JobApplyConfiguration {
	return batchv1apply.Job(RunName(s.Policy.Name, id), s.Settings.Namespace).
		WithLabels(s.runLabels(id)).WithAnnotations(s.annotations()).
		WithSpec(batchv1apply.JobSpec().
			WithBackoffLimit(migrationRestarts).
			WithTemplate(corev1apply.PodTemplateSpec().
				WithLabels(s.runLabels(id)).WithAnnotations(s.annotations()).
				WithSpec(corev1apply.PodSpec().
					WithServiceAccountName(MigrationRightsName(s.Policy.Name)).
					WithAutomountServiceAccountToken(true).
					WithEnableServiceLinks(false).
					WithRestartPolicy(corev1.RestartPolicyNever).
					WithSecurityContext(restrictedPod()).
					WithNodeSelector(linux).
					WithContainers(s.migrationContainer(id, storage)))))
}

func (s *state) migrationContainer(id, storage string) *corev1apply.ContainerApplyConfiguration {
	return corev1apply.Container().
		WithName("migrate").
		WithImage(s.Settings.Image).
		WithImagePullPolicy(corev1.PullIfNotPresent).
		WithArgs(s.migrationArgs(id, storage)...).
		WithPorts(corev1apply.ContainerPort().WithName("metrics").WithContainerPort(metricsPort).WithProtocol(corev1.ProtocolTCP)).
		WithResources(corev1apply.ResourceRequirements().
			WithRequests(corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("50m"), corev1.ResourceMemory: resource.MustParse("64Mi")}).
			WithLimits(corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("256Mi")})).
		WithSecurityContext(restrictedContainer())
}

// migrationArgs are what the run's pods are told. They are compared with those of
// a Job that is there: the same settings must give the same text.
func (s *state) migrationArgs(id, storage string) []string {
	target, migration := crds.Resource(s.CRD, storage), s.Policy.Spec.Migration
	args := []string{"migrate",
		"--run=" + id,
		"--crd=" + s.CRD.Name, "--crd-uid=" + string(s.CRD.UID), "--crd-generation=" + strconv.FormatInt(s.CRD.Generation, 10),
		"--group=" + target.Group, "--version=" + target.Version, "--resource=" + target.Resource,
		"--namespace=" + s.Settings.Namespace, "--checkpoint=" + RunName(s.Policy.Name, id),
		"--settle=" + s.Settings.Settle.String(),
		fmt.Sprintf("--concurrency=%d", ptr.Deref(migration.Concurrency, defaultConcurrency)),
		"--pace=" + string(cmp.Or(migration.Pace, v1alpha1.MigrationGentle)),
		"--verify=" + string(cmp.Or(migration.Verify, v1alpha1.MigrationVerifySample)),
	}
	if retried := s.plan.Status.Migration.RetryOf; retried != "" {
		args = append(args, "--retry="+RunName(s.Policy.Name, retried))
	}
	if ruleset := s.plan.Status.Migration.Ruleset; ruleset != "" {
		args = append(args, "--ruleset="+PlanName(s.Policy.Name, ruleset))
	}
	if most := migration.MaxWritesPerSecond; most != nil {
		args = append(args, fmt.Sprintf("--max-writes-per-second=%d", *most))
	}
	if to := s.Settings.TracingEndpoint; to != "" {
		args = append(args, "--tracing-endpoint="+to)
	}
	old, ways := without(crds.ServedVersions(s.CRD), storage), migration.Fallback
	if len(old) == 0 {
		ways = without(ways, v1alpha1.MigrationFallbackOldVersion)
	}
	if len(ways) > 0 {
		args = append(args, "--fallback="+join(ways))
	}
	if len(old) > 0 {
		args = append(args, "--old-versions="+join(old))
	}
	return args
}

// defaultConcurrency is that of the API, for policies that were stored before it.
const defaultConcurrency = 32

func join[T ~string](texts []T) string {
	joined := make([]string, 0, len(texts))
	for _, text := range texts {
		joined = append(joined, string(text))
	}
	return strings.Join(joined, ",")
}

func without[T comparable](all []T, one T) []T {
	return slices.DeleteFunc(slices.Clone(all), func(each T) bool { return each == one })
}

func (s *state) runLabels(id string) map[string]string {
	labels := s.labels(MigrationComponent)
	labels[RunLabel] = id
	return labels
}
