// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rights has the rights to the objects of a policy's kind: the operator grants them to
// its ServiceAccounts, or an administrator does.
package rights

import (
	"fmt"
	"slices"
	"strings"
	"time"

	rbacv1apply "k8s.io/client-go/applyconfigurations/rbac/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
)

// The manager needs these rights for the grants of this file. config/rbac/confinement.yaml
// confines them, and config/components/granted-rights removes them.
//
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=clusterroles,verbs=create;patch;delete;escalate;bind
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=clusterrolebindings,verbs=create;patch;delete

// Pause is the time between two checks of missing grants. No event reports a grant.
const Pause = 30 * time.Second

// Grant has the rights that a ServiceAccount of the operator's namespace needs.
type Grant struct {
	// Account is the name of the ServiceAccount, and of the role and binding.
	Account string
	Group   string
	// Resources are plural names, with a subresource if there is one.
	Resources []string
	Verbs     []string
}

// Of returns what a policy's migrations, samples, and cleaning of managedFields need.
func Of(cluster observed.Cluster) (migrate, read, clearing Grant) {
	name, plural := cluster.Policy.Name, cluster.CRD.Spec.Names.Plural
	to := func(account string, verbs ...string) Grant {
		return Grant{Account: account, Group: cluster.CRD.Spec.Group, Resources: []string{plural}, Verbs: verbs}
	}
	migrate = to(names.MigrationRights(name), "list", "patch")
	if slices.Contains(cluster.Policy.Spec.Migration.Fallback, v1alpha1.MigrationFallbackStatus) {
		migrate.Resources = append(migrate.Resources, plural+"/status")
	}
	return migrate, to(names.ReadRights(name), "get", "list"), to(names.CleanRights(name), "list", "patch")
}

// Commands are the kubectl commands for the grant.
func (g Grant) Commands(namespace string) string {
	resources := make([]string, 0, len(g.Resources))
	for _, resource := range g.Resources {
		plural, subresource, has := strings.Cut(resource, "/")
		resource = plural + "." + g.Group
		if has {
			resource += "/" + subresource
		}
		resources = append(resources, resource)
	}
	return fmt.Sprintf(
		"kubectl create clusterrole %[1]s --verb=%[2]s --resource=%[3]s; kubectl create clusterrolebinding %[1]s --clusterrole=%[1]s --serviceaccount=%[4]s:%[1]s",
		g.Account, strings.Join(g.Verbs, ","), strings.Join(resources, ","), namespace)
}

// notGranted says which grant is missing, and what it is for.
func notGranted(cluster observed.Cluster, what string, grant Grant) string {
	return fmt.Sprintf("the operator lacks permission to %s, and its installation does not let it grant that itself: run: %s", what, grant.Commands(cluster.Settings.Namespace))
}

// MissingToMigrate says which grant migrations lack; empty if they lack none. No event
// reports a grant, so the caller checks again after Pause.
func MissingToMigrate(cluster observed.Cluster) string {
	if cluster.Granted == nil || cluster.Granted.Migrate {
		return ""
	}
	migrate, _, _ := Of(cluster)
	return notGranted(cluster, "rewrite "+cluster.CRD.Name, migrate)
}

// MissingToRead is MissingToMigrate for samples.
func MissingToRead(cluster observed.Cluster) string {
	if cluster.Granted == nil || cluster.Granted.Read {
		return ""
	}
	_, read, _ := Of(cluster)
	return notGranted(cluster, "read "+cluster.CRD.Name+" to convert a sample of them, unless spec.verification.samples is 0", read)
}

// MissingToClear is MissingToMigrate for changes of managedFields.
func MissingToClear(cluster observed.Cluster) string {
	if cluster.Granted == nil || cluster.Granted.Clear {
		return ""
	}
	_, _, clearing := Of(cluster)
	return notGranted(cluster, "change metadata.managedFields of "+cluster.CRD.Name, clearing)
}

// Withdraw deletes the rights of a name, except those that an administrator granted.
func Withdraw(cluster observed.Cluster, name string) step.Step {
	return step.DeleteRights{Name: name, KeepClusterRole: cluster.Granted != nil}
}

// WithdrawOfRuns is Withdraw for the rights of migrations, and deletes everything else that their pods
// have, except a ServiceAccount that an administrator has prepared.
func WithdrawOfRuns(cluster observed.Cluster) step.Step {
	return step.DeleteRights{Name: names.MigrationRights(cluster.Policy.Name), OfRuns: true,
		KeepClusterRole: cluster.Granted != nil, KeepAccount: cluster.KeepAccount}
}

// ToRead grants get and list on the one resource, and nothing else.
func ToRead(cluster observed.Cluster) []step.Step {
	_, read, _ := Of(cluster)
	return grant(cluster, read)
}

// ToClear grants list and patch on the one resource, and nothing else.
func ToClear(cluster observed.Cluster) []step.Step {
	_, _, clearing := Of(cluster)
	return grant(cluster, clearing)
}

// grant creates a role and its binding, unless an administrator grants instead.
func grant(cluster observed.Cluster, grant Grant) []step.Step {
	if cluster.Granted != nil {
		return nil
	}
	name := grant.Account
	return []step.Step{
		step.Apply{Object: rbacv1apply.ClusterRole(name).
			WithLabels(cluster.Labels(names.VerificationComponent)).WithAnnotations(cluster.Annotations()).
			WithRules(rbacv1apply.PolicyRule().
				WithAPIGroups(grant.Group).WithResources(grant.Resources...).WithVerbs(grant.Verbs...))},
		step.Apply{Object: rbacv1apply.ClusterRoleBinding(name).
			WithLabels(cluster.Labels(names.VerificationComponent)).WithAnnotations(cluster.Annotations()).
			WithRoleRef(rbacv1apply.RoleRef().WithAPIGroup("rbac.authorization.k8s.io").WithKind("ClusterRole").WithName(name)).
			WithSubjects(rbacv1apply.Subject().WithKind("ServiceAccount").WithNamespace(cluster.Settings.Namespace).WithName(name))},
	}
}
