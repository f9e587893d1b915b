// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/conversion"
)

// warnAll looks for what works and may surprise: what hurts most comes first.
func (c *compiler) warnAll(leaves []FieldVerdict, overflow v1alpha1.OverflowAction) {
	c.warnLabels()
	c.warnRequired()
	c.warnPreservedSize(overflow)
	c.warnNameless(leaves)
	c.warnStricter()
	c.warnUnlike()
	c.warnNamesakes()
}

// warnUnlike names the fields that both versions have and that are not of one shape.
func (c *compiler) warnUnlike() {
	if len(c.unlike) > 0 {
		c.warn("not copied between %s and %s, each version keeps its own: %s: write a rule where one can be made of the other",
			c.spokeVersion, c.hubVersion, few(c.unlike))
	}
}

// unlike says what differs in a field, or somewhere in it.
func unlike(path conversion.Path, differs string) string {
	if strings.HasPrefix(differs, path.String()+" ") {
		return differs
	}
	return path.String() + " (" + differs + ")"
}

// warnNameless names the lists whose elements have no keys and something that is
// preserved: an element that is edited on the other side is another one.
func (c *compiler) warnNameless(leaves []FieldVerdict) {
	byList := map[string][]string{}
	var lists []string
	for _, leaf := range leaves {
		if leaf.Owner != OwnerPreserved {
			continue
		}
		path, err := conversion.ParsePath(leaf.Root)
		if err != nil {
			continue
		}
		if at := c.nameless(path); at != "" {
			if byList[at] == nil {
				lists = append(lists, at)
			}
			byList[at] = append(byList[at], leaf.Version+":"+leaf.Root)
		}
	}
	for _, at := range lists {
		c.warn("the elements of %s have no keys: what is preserved of one (%s) is lost once that element is edited in the other version: give the list x-kubernetes-list-type: map and keys, in both versions",
			at, few(byList[at]))
	}
}

// nameless is the first list on the way to a field whose elements are paired, and
// have nothing that tells them apart.
func (c *compiler) nameless(path conversion.Path) string {
	for i, segment := range path {
		if segment != conversion.Each {
			continue
		}
		spoke, errSpoke := resolve(c.spoke, path[:i])
		hub, errHub := resolve(c.hub, path[:i])
		if errSpoke != nil || errHub != nil {
			return ""
		}
		if spoke.Items != nil && hub.Items != nil && c.sharedKeys(path[:i], spoke, hub) == nil {
			return path[:i].String()
		}
	}
	return ""
}

// warnNamesakes names the fields of the hub whose name is that of a field of the
// spoke that a rule takes elsewhere. Nothing is lost: the hub's field has no place
// in the spoke, and is preserved. But it is easily taken for the other one.
func (c *compiler) warnNamesakes() {
	for _, from := range c.spokeClaims {
		if from.rule.Drop != nil || from.path[0] == "metadata" {
			continue
		}
		is := func(path conversion.Path) bool { return slices.Equal(path, from.path) }
		if _, err := resolve(c.hub, from.path); err == nil && slices.ContainsFunc(c.preservedHub, is) {
			c.warn("%s is another field at %s than at %s, where %s takes it elsewhere: each version keeps its own",
				from.path, c.hubVersion, c.spokeVersion, shortRule(from.rule.at.String()))
		}
	}
}

// storageNote says what it costs that the hub is not the storage version: nothing
// where there are only two versions, and a second step where there are more.
func storageNote(crd *apiextensionsv1.CustomResourceDefinition, hub string, schemas map[string]*schema.Structural) []string {
	i := slices.IndexFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Storage })
	if i < 0 || crd.Spec.Versions[i].Name == hub || len(schemas) < 3 {
		return nil
	}
	return []string{fmt.Sprintf("objects are stored at %s, which is not the hub: between it and the other versions each conversion takes two steps, over %s",
		crd.Spec.Versions[i].Name, hub)}
}
