// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	batchv1apply "k8s.io/client-go/applyconfigurations/batch/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	flowcontrolv1apply "k8s.io/client-go/applyconfigurations/flowcontrol/v1"
	rbacv1apply "k8s.io/client-go/applyconfigurations/rbac/v1"
	"k8s.io/utils/ptr"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/podspec"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/rights"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
)

// migrationRestarts is how often a migration pod may fail before the run fails: enough for node
// drains and restarts of API servers.
const migrationRestarts = 10

// settingsLength is the number of characters of a hash of settings.
const settingsLength = 16

// startRun creates the rights, the checkpoint and the Job of a run, or resumes the Job.
func (m *Migration) startRun(run observed.Run, storage string) []step.Step {
	// The account and its Role come first: by them, the manager knows that there are rights to
	// withdraw.
	steps := []step.Step{step.Apply{Object: m.migrationAccount()},
		step.Apply{Object: m.checkpointRole(run.ID)}, step.Apply{Object: m.checkpointBinding()}}
	steps = append(steps, rights.ToMigrate(m.Cluster).Steps(m.otherReads()...)...)
	steps = append(steps, step.Apply{Object: m.flowSchema()}, step.Apply{Object: m.checkpoint(run.ID)})
	switch {
	case run.Job == nil:
		steps = append(steps, step.Create{Object: m.migrationJob(run.ID, storage)})
	case run.Suspended():
		steps = append(steps, step.SuspendRun{Name: run.Job.Name, UID: run.Job.UID, Suspend: false})
	}
	return steps
}

// otherSettings reports that the Job has other pods than the policy or the pod of the manager now
// require, or that another version of the operator wrote them in another form. Pods of a Job are
// immutable, so the Job is created again. The record stays, and the run continues from there.
func (m *Migration) otherSettings(run observed.Run, storage string) bool {
	return run.Job != nil && run.Job.DeletionTimestamp.IsZero() && run.Job.Annotations[names.SettingsAnnotation] != m.settings(run.ID, storage)
}

// settings is a hash of the pods of a run, without their image: a run continues with its image when
// the operator is upgraded.
func (m *Migration) settings(id, storage string) string {
	pod := m.migrationPod(id, storage)
	pod.Containers[0].Image = nil
	text, _ := json.Marshal(pod) // cannot fail: it is to become JSON
	return names.Hash(string(text))[:settingsLength]
}

func (m *Migration) migrationAccount() *corev1apply.ServiceAccountApplyConfiguration {
	return corev1apply.ServiceAccount(names.MigrationRights(m.Policy.Name), m.Settings.Namespace).
		WithLabels(m.Labels(names.MigrationComponent)).WithAnnotations(m.Annotations()).
		WithAutomountServiceAccountToken(false)
}

// otherReads are get on the CustomResourceDefinition that the run is pinned to, and the reads that find
// all API servers.
func (m *Migration) otherReads() []*rbacv1apply.PolicyRuleApplyConfiguration {
	return []*rbacv1apply.PolicyRuleApplyConfiguration{
		rbacv1apply.PolicyRule().
			WithAPIGroups("apiextensions.k8s.io").WithResources("customresourcedefinitions").
			WithResourceNames(m.CRD.Name).WithVerbs("get"),
		// The addresses of the Service kubernetes, each of which is asked whether it writes at the
		// storage version already.
		rbacv1apply.PolicyRule().
			WithAPIGroups("discovery.k8s.io").WithResources("endpointslices").WithVerbs("list"),
		// Each API server holds one, so that they can be counted behind a load balancer.
		rbacv1apply.PolicyRule().
			WithAPIGroups("coordination.k8s.io").WithResources("leases").WithVerbs("list"),
	}
}

// checkpointRole lets a run write its own record, and read the record of the run that it retries.
func (m *Migration) checkpointRole(id string) *rbacv1apply.RoleApplyConfiguration {
	configMap := func(id string) *rbacv1apply.PolicyRuleApplyConfiguration {
		return rbacv1apply.PolicyRule().WithAPIGroups("").WithResources("configmaps").WithResourceNames(names.Run(m.Policy.Name, id))
	}
	role := rbacv1apply.Role(names.MigrationRights(m.Policy.Name), m.Settings.Namespace).
		WithLabels(m.Labels(names.MigrationComponent)).WithAnnotations(m.Annotations()).
		WithRules(configMap(id).WithVerbs("get", "patch"))
	if retried := m.Status.Migration.RetryOf; retried != "" {
		role.WithRules(configMap(retried).WithVerbs("get"))
	}
	if m.Status.Migration.Ruleset != "" {
		role.WithRules(rbacv1apply.PolicyRule().WithAPIGroups("").WithResources("configmaps").
			WithResourceNames(m.RulesetConfigMap).WithVerbs("get"))
	}
	return role
}

func (m *Migration) checkpointBinding() *rbacv1apply.RoleBindingApplyConfiguration {
	name := names.MigrationRights(m.Policy.Name)
	return rbacv1apply.RoleBinding(name, m.Settings.Namespace).
		WithLabels(m.Labels(names.MigrationComponent)).WithAnnotations(m.Annotations()).
		WithRoleRef(rbacv1apply.RoleRef().WithAPIGroup("rbac.authorization.k8s.io").WithKind("Role").WithName(name)).
		WithSubjects(rbacv1apply.Subject().WithKind("ServiceAccount").WithNamespace(m.Settings.Namespace).WithName(name))
}

// checkpoint has no data, so that applying it again keeps the record.
func (m *Migration) checkpoint(id string) *corev1apply.ConfigMapApplyConfiguration {
	return corev1apply.ConfigMap(names.Run(m.Policy.Name, id), m.Settings.Namespace).
		WithLabels(m.runLabels(id)).WithAnnotations(m.Annotations())
}

func (m *Migration) migrationJob(id, storage string) *batchv1apply.JobApplyConfiguration {
	return batchv1apply.Job(names.Run(m.Policy.Name, id), m.Settings.Namespace).
		WithLabels(m.runLabels(id)).WithAnnotations(m.Annotations()).
		WithAnnotations(map[string]string{names.SettingsAnnotation: m.settings(id, storage)}).
		WithSpec(batchv1apply.JobSpec().
			WithBackoffLimit(migrationRestarts).
			WithTemplate(corev1apply.PodTemplateSpec().
				WithLabels(m.runLabels(id)).WithAnnotations(m.Annotations()).
				WithSpec(m.migrationPod(id, storage))))
}

func (m *Migration) migrationPod(id, storage string) *corev1apply.PodSpecApplyConfiguration {
	pod := corev1apply.PodSpec().
		WithServiceAccountName(names.MigrationRights(m.Policy.Name)).
		WithAutomountServiceAccountToken(true).
		WithEnableServiceLinks(false).
		WithRestartPolicy(corev1.RestartPolicyNever).
		WithSecurityContext(podspec.Restricted()).
		WithContainers(m.migrationContainer(id, storage))
	m.Settings.Inherited.Apply(pod, m.Policy.Spec.Migration.Workload.Placement)
	return pod
}

func (m *Migration) migrationContainer(id, storage string) *corev1apply.ContainerApplyConfiguration {
	return corev1apply.Container().
		WithName("migrate").
		WithImage(m.Settings.Image).
		WithImagePullPolicy(corev1.PullIfNotPresent).
		WithArgs(slices.Insert(m.runSpec(id, storage).Args(), 1, "--metrics-bind-address=:"+strconv.Itoa(podspec.MetricsPort))...).
		WithPorts(corev1apply.ContainerPort().WithName("metrics").WithContainerPort(podspec.MetricsPort).WithProtocol(corev1.ProtocolTCP)).
		WithResources(podspec.Resources(cmp.Or(m.Policy.Spec.Migration.Workload.Resources, defaultResources))).
		WithSecurityContext(podspec.RestrictedContainer())
}

// defaultResources are those of a migration pod whose policy has none. The memory of a run does not
// grow with the number of objects.
var defaultResources = &v1alpha1.Resources{
	Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("50m"), corev1.ResourceMemory: resource.MustParse("64Mi")},
	Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("256Mi")},
}

// runSpec is the specification for the pods of the run.
func (m *Migration) runSpec(id, storage string) *contract.Spec {
	wants, status := m.Policy.Spec.Migration, m.Status.Migration
	old := without(crds.ServedVersions(m.CRD), storage)
	fallback := wants.Fallback
	if len(old) == 0 {
		fallback = without(fallback, v1alpha1.MigrationFallbackOldVersion)
	}
	spec := &contract.Spec{
		FormatVersion:      contract.SpecFormat,
		Run:                id,
		Pin:                contract.Pin{Name: m.CRD.Name, UID: m.CRD.UID, Generation: m.CRD.Generation},
		Resource:           metav1.GroupVersionResource(crds.Resource(m.CRD, storage)),
		Namespace:          m.Settings.Namespace,
		RecordConfigMap:    names.Run(m.Policy.Name, id),
		PropagationDelay:   metav1.Duration{Duration: m.Settings.PropagationDelay},
		Preflight:          contract.DefaultPreflight,
		PageSize:           contract.DefaultPageSize,
		Concurrency:        contract.DefaultConcurrency,
		Pace:               cmp.Or(wants.Pace, v1alpha1.MigrationGentle),
		MaxWritesPerSecond: int(ptr.Deref(wants.MaxWritesPerSecond, 0)),
		Verify:             wants.Verify,
		Fallback:           fallback,
		OldVersions:        old,
		TracingEndpoint:    m.Settings.TracingEndpoint,
	}
	if status.RetryOf != "" {
		spec.RetryConfigMap = names.Run(m.Policy.Name, status.RetryOf)
	}
	if status.Ruleset != "" {
		spec.RulesetConfigMap, spec.Ruleset = m.RulesetConfigMap, status.Ruleset
	}
	return spec
}

func without[T comparable](all []T, one T) []T {
	return slices.DeleteFunc(slices.Clone(all), func(each T) bool { return each == one })
}

func (m *Migration) runLabels(id string) map[string]string {
	labels := m.Labels(names.MigrationComponent)
	labels[names.RunLabel] = id
	return labels
}

const (
	// DefaultPriorityLevel is the PriorityLevelConfiguration of migrations, which is
	// installed with the operator. If it is missing, API servers pass over the
	// FlowSchemas that name it, and migrations share the level of other
	// ServiceAccounts.
	DefaultPriorityLevel = "conversion-migrations"
	// flowPrecedence comes before that of all ServiceAccounts, 9000, and after those
	// of the cluster's own.
	flowPrecedence = 8500
)

// flowSchema gives requests of the policy's migrations a lower priority than those of other
// clients.
func (m *Migration) flowSchema() *flowcontrolv1apply.FlowSchemaApplyConfiguration {
	name := names.MigrationRights(m.Policy.Name)
	return flowcontrolv1apply.FlowSchema(name).
		WithLabels(m.Labels(names.MigrationComponent)).WithAnnotations(m.Annotations()).
		WithSpec(flowcontrolv1apply.FlowSchemaSpec().
			WithPriorityLevelConfiguration(flowcontrolv1apply.PriorityLevelConfigurationReference().WithName(cmp.Or(m.Settings.PriorityLevel, DefaultPriorityLevel))).
			WithMatchingPrecedence(flowPrecedence).
			WithDistinguisherMethod(flowcontrolv1apply.FlowDistinguisherMethod().WithType(flowcontrolv1.FlowDistinguisherMethodByUserType)).
			WithRules(flowcontrolv1apply.PolicyRulesWithSubjects().
				WithSubjects(flowcontrolv1apply.Subject().
					WithKind(flowcontrolv1.SubjectKindServiceAccount).
					WithServiceAccount(flowcontrolv1apply.ServiceAccountSubject().WithNamespace(m.Settings.Namespace).WithName(name))).
				WithResourceRules(flowcontrolv1apply.ResourcePolicyRule().
					WithVerbs(rbacv1.VerbAll).WithAPIGroups(rbacv1.APIGroupAll).WithResources(rbacv1.ResourceAll).
					WithClusterScope(true).WithNamespaces(flowcontrolv1.NamespaceEvery)).
				WithNonResourceRules(flowcontrolv1apply.NonResourcePolicyRule().
					WithVerbs(rbacv1.VerbAll).WithNonResourceURLs(rbacv1.NonResourceAll))))
}
