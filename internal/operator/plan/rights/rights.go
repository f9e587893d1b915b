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

	cluster observed.Cluster
	// component is the label of the role, and purpose what the rights are for.
	component, purpose string
	// granted tells that the operator grants the rights itself, or an administrator has.
	granted bool
}

// ToMigrate is what migrations need.
func ToMigrate(cluster observed.Cluster) Grant {
	migrate := newGrant(cluster, names.MigrationRights(cluster.Policy.Name), names.MigrationComponent, "list", "patch")
	migrate.purpose, migrate.granted = "rewrite "+cluster.CRD.Name, cluster.Granted == nil || cluster.Granted.Migrate
	if slices.Contains(cluster.Policy.Spec.Migration.Fallback, v1alpha1.MigrationFallbackStatus) {
		migrate.Resources = append(migrate.Resources, cluster.CRD.Spec.Names.Plural+"/status")
	}
	return migrate
}

// ToRead is what samples need.
func ToRead(cluster observed.Cluster) Grant {
	read := newGrant(cluster, names.ReadRights(cluster.Policy.Name), names.VerificationComponent, "get", "list")
	read.purpose = "read " + cluster.CRD.Name + " to convert a sample of them, unless spec.verification.samples is 0"
	read.granted = cluster.Granted == nil || cluster.Granted.Read
	return read
}

// ToClear is what changes of managedFields need.
func ToClear(cluster observed.Cluster) Grant {
	clearing := newGrant(cluster, names.CleanRights(cluster.Policy.Name), names.VerificationComponent, "list", "patch")
	clearing.purpose, clearing.granted = "change metadata.managedFields of "+cluster.CRD.Name, cluster.Granted == nil || cluster.Granted.Clear
	return clearing
}

func newGrant(cluster observed.Cluster, account, component string, verbs ...string) Grant {
	return Grant{Account: account, Group: cluster.CRD.Spec.Group, Resources: []string{cluster.CRD.Spec.Names.Plural}, Verbs: verbs,
		cluster: cluster, component: component}
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

// Missing says that an administrator has to grant the rights; empty if they are not missing. No event
// reports a grant, so the caller checks again after Pause.
func (g Grant) Missing() string {
	if g.granted {
		return ""
	}
	return fmt.Sprintf("the operator lacks permission to %s, and its installation does not let it grant that itself: run: %s",
		g.purpose, g.Commands(g.cluster.Settings.Namespace))
}

// Steps create a role with the rights, and with more rules, and its binding, unless an administrator
// grants instead.
func (g Grant) Steps(more ...*rbacv1apply.PolicyRuleApplyConfiguration) []step.Step {
	if g.cluster.Granted != nil {
		return nil
	}
	return []step.Step{
		step.Apply{Object: rbacv1apply.ClusterRole(g.Account).
			WithLabels(g.cluster.Labels(g.component)).WithAnnotations(g.cluster.Annotations()).
			WithRules(rbacv1apply.PolicyRule().WithAPIGroups(g.Group).WithResources(g.Resources...).WithVerbs(g.Verbs...)).
			WithRules(more...)},
		step.Apply{Object: rbacv1apply.ClusterRoleBinding(g.Account).
			WithLabels(g.cluster.Labels(g.component)).WithAnnotations(g.cluster.Annotations()).
			WithRoleRef(rbacv1apply.RoleRef().WithAPIGroup("rbac.authorization.k8s.io").WithKind("ClusterRole").WithName(g.Account)).
			WithSubjects(rbacv1apply.Subject().WithKind("ServiceAccount").WithNamespace(g.cluster.Settings.Namespace).WithName(g.Account))},
	}
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
