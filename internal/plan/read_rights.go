// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"k8s.io/apimachinery/pkg/runtime"
	rbacv1apply "k8s.io/client-go/applyconfigurations/rbac/v1"
)

// ReadRightsName names the ClusterRole and its binding by which the objects of a
// policy's kind may be read, and the ServiceAccount that has them. There is no
// such ServiceAccount: the manager may act as it, and nobody can log in as it.
func ReadRightsName(policy string) string { return ChildName(policy) + "-read" }

// ReaderName is the user that may read the objects of a policy's kind.
func ReaderName(policy, namespace string) string {
	return "system:serviceaccount:" + namespace + ":" + ReadRightsName(policy)
}

// readRights grant get and list on the one resource, and nothing else.
func (s *state) readRights() []runtime.ApplyConfiguration {
	_, read, _ := Grants(s.Observed)
	return s.rights(read)
}

// rights make a grant, unless somebody else makes them all.
func (s *state) rights(grant Grant) []runtime.ApplyConfiguration {
	if s.Granted != nil {
		return nil
	}
	name := grant.Account
	return []runtime.ApplyConfiguration{
		rbacv1apply.ClusterRole(name).
			WithLabels(s.labels(VerificationComponent)).WithAnnotations(s.annotations()).
			WithRules(rbacv1apply.PolicyRule().
				WithAPIGroups(grant.Group).WithResources(grant.Resources...).WithVerbs(grant.Verbs...)),
		rbacv1apply.ClusterRoleBinding(name).
			WithLabels(s.labels(VerificationComponent)).WithAnnotations(s.annotations()).
			WithRoleRef(rbacv1apply.RoleRef().WithAPIGroup("rbac.authorization.k8s.io").WithKind("ClusterRole").WithName(name)).
			WithSubjects(rbacv1apply.Subject().WithKind("ServiceAccount").WithNamespace(s.Settings.Namespace).WithName(name)),
	}
}
