// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	flowcontrolv1apply "k8s.io/client-go/applyconfigurations/flowcontrol/v1"
)

const (
	// DefaultPriorityLevel is the PriorityLevelConfiguration of migrations, which is
	// installed with the operator. Where it is missing, API servers pass over the
	// FlowSchemas that name it, and migrations share the level of other
	// ServiceAccounts.
	DefaultPriorityLevel = "conversion-migrations"
	// flowPrecedence comes before that of all ServiceAccounts, 9000, and after those
	// of the cluster's own.
	flowPrecedence = 8500
)

// flowSchema puts the requests of the policy's migrations, and of nobody else,
// behind those of others.
func (s *state) flowSchema() *flowcontrolv1apply.FlowSchemaApplyConfiguration {
	name := MigrationRightsName(s.Policy.Name)
	return flowcontrolv1apply.FlowSchema(name).
		WithLabels(s.labels(MigrationComponent)).WithAnnotations(s.annotations()).
		WithSpec(flowcontrolv1apply.FlowSchemaSpec().
			WithPriorityLevelConfiguration(flowcontrolv1apply.PriorityLevelConfigurationReference().WithName(cmp.Or(s.Settings.PriorityLevel, DefaultPriorityLevel))).
			WithMatchingPrecedence(flowPrecedence).
			WithDistinguisherMethod(flowcontrolv1apply.FlowDistinguisherMethod().WithType(flowcontrolv1.FlowDistinguisherMethodByUserType)).
			WithRules(flowcontrolv1apply.PolicyRulesWithSubjects().
				WithSubjects(flowcontrolv1apply.Subject().
					WithKind(flowcontrolv1.SubjectKindServiceAccount).
					WithServiceAccount(flowcontrolv1apply.ServiceAccountSubject().WithNamespace(s.Settings.Namespace).WithName(name))).
				WithResourceRules(flowcontrolv1apply.ResourcePolicyRule().
					WithVerbs(rbacv1.VerbAll).WithAPIGroups(rbacv1.APIGroupAll).WithResources(rbacv1.ResourceAll).
					WithClusterScope(true).WithNamespaces(flowcontrolv1.NamespaceEvery)).
				WithNonResourceRules(flowcontrolv1apply.NonResourcePolicyRule().
					WithVerbs(rbacv1.VerbAll).WithNonResourceURLs(rbacv1.NonResourceAll))))
}
