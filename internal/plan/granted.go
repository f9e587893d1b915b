// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// What it takes to make the grants of this file. Confined by
// config/rbac/confinement.yaml, and taken away by config/components/granted-rights.
//
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=clusterroles,verbs=create;patch;delete;escalate;bind
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=clusterrolebindings,verbs=create;patch;delete

// grantPause is between two looks whether somebody has granted what is missing:
// no event tells.
const grantPause = 30 * time.Second

// Granted tells what somebody else has granted, where the operator may not write
// cluster roles: config/components/granted-rights. It then waits for what is
// missing, and takes nothing away.
type Granted struct {
	// Migrate: the policy's migrations may do what they have to.
	Migrate bool
	// Read: the objects of the policy's kind may be read for samples.
	Read bool
	// Clear: their managedFields may be changed.
	Clear bool
}

// Grant is what a ServiceAccount of the operator's namespace must be allowed.
type Grant struct {
	// Account is the name of the ServiceAccount, and of the role and binding.
	Account string
	Group   string
	// Resources are plural names, with a subresource if there is one.
	Resources []string
	Verbs     []string
}

// Grants are what a policy's migrations, samples and clearing take, in this order.
func Grants(observed Observed) (migrate, read, clearing Grant) {
	name, names := observed.Policy.Name, observed.CRD.Spec.Names
	to := func(account string, verbs ...string) Grant {
		return Grant{Account: account, Group: observed.CRD.Spec.Group, Resources: []string{names.Plural}, Verbs: verbs}
	}
	migrate = to(MigrationRightsName(name), "list", "patch")
	if slices.Contains(observed.Policy.Spec.Migration.Fallback, v1alpha1.MigrationFallbackStatus) {
		migrate.Resources = append(migrate.Resources, names.Plural+"/status")
	}
	return migrate, to(ReadRightsName(name), "get", "list"), to(ClearRightsName(name), "list", "patch")
}

// Commands grant it.
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

// notGranted says what to grant, and what it is for.
func (s *state) notGranted(what string, grant Grant) string {
	s.recheck(grantPause)
	return fmt.Sprintf("the operator may not %s, and is installed without the right to let itself: grant it with: %s", what, grant.Commands(s.Settings.Namespace))
}

// mayNotMigrate says what to grant before objects can be migrated; empty where
// nothing is missing.
func (s *state) mayNotMigrate() string {
	if s.Granted == nil || s.Granted.Migrate {
		return ""
	}
	migrate, _, _ := Grants(s.Observed)
	return s.notGranted("rewrite "+s.CRD.Name, migrate)
}

func (s *state) mayNotRead() string {
	if s.Granted == nil || s.Granted.Read {
		return ""
	}
	_, read, _ := Grants(s.Observed)
	return s.notGranted("read "+s.CRD.Name+" to convert a sample of them, which spec.verification.samples: 0 does without", read)
}

func (s *state) mayNotClear() string {
	if s.Granted == nil || s.Granted.Clear {
		return ""
	}
	_, _, clearing := Grants(s.Observed)
	return s.notGranted("change metadata.managedFields of "+s.CRD.Name, clearing)
}

// withdraw takes the rights of a name away, those that are the operator's to take.
func (s *state) withdraw(name string) { s.do(DeleteRights{Name: name, Kept: s.Granted != nil}) }
